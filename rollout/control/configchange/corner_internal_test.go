package configchange

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/kit/recorder"
)

// until reconciles until it fails, some times at most.
func (a *apiServer) until() error {
	a.t.Helper()
	for range 10 {
		result, err := a.reconciler.Reconcile(a.t.Context(), key)
		if err != nil {
			return err
		}
		a.now = a.now.Add(result.RequeueAfter)
	}
	return nil
}

func TestAChangeIsAnEventOfTheWorkload(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	a.settle()
	edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
	a.settle()
	event := recorder.Next(a.events)
	if !strings.HasPrefix(event, "Normal ConfigChanged ") || !strings.Contains(event, "settings") || !strings.HasSuffix(event, ": RestartRollout "+a.rollouts()[0].Name+" has been created") {
		t.Errorf("%q", event)
	}
	recorder.Want(t, a.events)
}

// What may pass is tried again without a word.
func TestOnlyARefusalForGoodIsAnEvent(t *testing.T) {
	t.Parallel()
	group := v1alpha1.GroupVersion().WithResource("restartrollouts").GroupResource()
	for name, tt := range map[string]struct {
		answer error
		fails  bool
		want   []string
	}{
		"bad request":    {apierrors.NewBadRequest("no"), true, []string{"Warning RolloutRefused "}},
		"invalid":        {apierrors.NewInvalid(v1alpha1.GroupVersion().WithKind("RestartRollout").GroupKind(), "x", nil), true, []string{"Warning RolloutRefused "}},
		"forbidden":      {apierrors.NewForbidden(group, "x", errors.New("quota")), true, []string{"Warning RolloutRefused "}},
		"away":           {apierrors.NewInternalError(errors.New("webhook is away")), true, nil},
		"already exists": {apierrors.NewAlreadyExists(group, "x"), false, nil},
	} {
		a := newAPIServer(t, deployment(), configMap("1"))
		a.settle()
		edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
		a.refuse = tt.answer
		if err := a.until(); (err != nil) != tt.fails || (a.trigger().Status.Pending != nil) != tt.fails {
			t.Errorf("%s: %v, %+v", name, err, a.trigger().Status)
		}
		recorder.Want(t, a.events, tt.want...)
	}
}

// one is a workload of another kind than deployment, and a pod of it.
func one(kind string) (client.Object, *corev1.Pod) {
	from := deployment()
	pod := podOf("web", "web-0")
	delete(pod.Labels, "pod-template-hash")
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "web", UID: from.UID, Controller: new(true)}}
	if kind == "StatefulSet" {
		o := &appsv1.StatefulSet{ObjectMeta: from.ObjectMeta}
		o.Spec.Selector, o.Spec.Template = from.Spec.Selector, from.Spec.Template
		return o, pod
	}
	o := &appsv1.DaemonSet{ObjectMeta: from.ObjectMeta}
	o.Spec.Selector, o.Spec.Template = from.Spec.Selector, from.Spec.Template
	return o, pod
}

func TestAChangeRestartsWorkloadsOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		object, pod := one(kind)
		a := newAPIServer(t, object, configMap("1"), pod)
		of := workload{Kind: kind, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
		look := func() {
			for range 6 {
				result, err := a.reconciler.Reconcile(t.Context(), of)
				if err != nil {
					t.Fatal(err)
				}
				a.now = a.now.Add(result.RequeueAfter)
			}
		}
		look()
		edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
		look()
		rollouts := a.rollouts()
		if len(rollouts) != 1 {
			t.Fatalf("%s: %d rollouts", kind, len(rollouts))
		}
		if diff := cmp.Diff(&v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: kind, Name: "web"}, rollouts[0].Spec.TargetRef); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
		if len(a.refreshed) != 1 {
			t.Errorf("%s: pods %v are refreshed", kind, a.refreshed)
		}
	}
}

func TestATriggerBelongsToItsWorkload(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	a.settle()
	trigger := a.trigger()
	want := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "deployment", Controller: new(true)}}
	if diff := cmp.Diff(want, trigger.OwnerReferences); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(v1alpha1.RestartTriggerSpec{TargetRef: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}, trigger.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// An object that is not there is known without content, so that its creation is a change of what the pods have.
func TestAnObjectThatIsNotThereIsKnownByItsName(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment())
	a.reconciler.Secrets = true
	a.settle()
	want := []v1alpha1.ConfigObject{{Kind: "ConfigMap", Name: "settings"}, {Kind: "Secret", Name: "password"}}
	if diff := cmp.Diff(want, a.trigger().Status.Objects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestANamespaceThatIsLookedAtNowIsNotForgotten(t *testing.T) {
	t.Parallel()
	p, now := newPaces(2), time.Now()
	if _, later := p.begin("slow", now); later != 0 {
		t.Fatalf("waits for %s", later)
	}
	now = now.Add(time.Hour)
	if _, later := p.begin("another", now); later != 0 {
		t.Fatalf("waits for %s", later)
	}
	if _, later := p.begin("slow", now); later != whenFull {
		t.Errorf("a second worker may begin after %s", later)
	}
}

func TestHalfOfTheWorkersAndAtLeastOneAreForANamespace(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 10: 5} {
		if got := newPaces(workers).workers; got != want {
			t.Errorf("%d of %d, want %d", got, workers, want)
		}
	}
}

// A namespace that has all its workers is not looked at, and its turn is not lost.
func TestALookThatHasToWaitChangesNothing(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	done, _ := a.reconciler.paces.begin("shop", time.Now())
	if result, err := a.reconciler.Reconcile(t.Context(), key); err != nil || result.RequeueAfter != whenFull || a.trigger() != nil {
		t.Errorf("%v, %v, %+v", result, err, a.trigger())
	}
	done()
	if a.settle(); a.trigger() == nil {
		t.Error("it is never looked at")
	}
}
