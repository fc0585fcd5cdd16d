package control

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// unjudgeable has the look at one pod panic, in the read of its requests.
func (w *world) unjudgeable(name string, fault func() error) {
	w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*v1beta1.ContainerRecreateRequestList); ok {
				var of client.ListOptions
				of.ApplyOptions(options)
				if of.FieldSelector != nil && of.FieldSelector.Matches(fieldsOf(name)) {
					if err := fault(); err != nil {
						return err
					}
				}
			}
			return c.List(ctx, list, options...)
		},
	})
}

type fieldsOf string

func (f fieldsOf) Has(string) bool   { return true }
func (f fieldsOf) Get(string) string { return string(f) }

func planted() error { panic("planted") }

func TestAPodThatCannotBeJudgedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.look()
	w.unjudgeable("web-0", planted)
	w.change(image("log:2"))
	w.rounds(8)
	if got := w.images(); got["log:2"] != 3 || got["log:1"] != 1 {
		t.Errorf("%v in the end", got)
	}
	if status := w.set().Status; status.MatchedPods != 4 || status.UpdatedPods != 3 {
		t.Errorf("status: %d of %d pods are updated", status.UpdatedPods, status.MatchedPods)
	}
	degraded := meta.FindStatusCondition(w.set().Status.Conditions, v1beta1.ConditionDegraded)
	if degraded == nil || !strings.Contains(degraded.Message, "/web-0: not judged: ") {
		t.Errorf("the SidecarSet does not say which pod that is, and why: %+v", degraded)
	}
}

// In its own workload it takes one of the places: whether it serves is not known.
func TestAPodThatCannotBeJudgedCountsAsUnavailableInItsWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	owner := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
	}
	for _, pod := range w.pods() {
		owner(&pod)
		w.check(w.Update(t.Context(), &pod))
	}
	w.look()
	w.unjudgeable("web-0", planted)
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("log:2")(s)
		s.UpdateStrategy.MaxUnavailable = maxUnavailable(4)
		s.UpdateStrategy.MaxUnavailablePerWorkload = maxUnavailable(1)
	})
	w.rounds(4)
	if got := w.images(); got["log:2"] != 0 {
		t.Errorf("%v although one of the workload may be unavailable already", got)
	}
}

// Budgets were computed from the pods before the first that could not be read.
func TestNothingIsUpdatedBeforeAllPodsHaveBeenRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.look()
	w.unjudgeable("web-1", func() error { return errors.New("the cache is not ready") })
	w.change(image("log:2"))
	w.r.lastPodEvent.Store(w.now.UnixNano()) // so that the cache is believed
	for range 3 {
		if _, err := w.r.Reconcile(t.Context(), request("logs")); err == nil {
			t.Error("no error, and no other try")
		}
	}
	if got := w.images(); got["log:1"] != 4 {
		t.Errorf("%v", got)
	}
}

func TestAPodThatCannotBeJudgedIsNotEvicted(t *testing.T) {
	t.Parallel()
	f := rollout.NewFleet(nil)
	f.Set(rollout.Pod{Key: client.ObjectKey{Namespace: "shop", Name: "web"}, UID: "1", Workload: "w", State: rollout.NotUpgradable, Unjudged: true})
	strategy, err := rollout.NewStrategy(&v1beta1.SidecarSetUpdateStrategy{RecreatePolicy: v1beta1.RecreateEvict}, false)
	if err != nil {
		t.Fatal(err)
	}
	if selection := f.Select(&strategy, newWorld(t, 0).now, nil); len(selection.Pods) > 0 {
		t.Errorf("selected %v", selection.Pods)
	}
}
