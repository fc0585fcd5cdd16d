package workload

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// sentPatches is what the controller sends to the API server about pods.
type sentPatches struct {
	refuses bool // the API server refuses patches of pod web-a-0, apart from its status
	trials  int  // dry runs
	drains  int  // patches of the status of pod web-a-0
	resizes int
}

// watched has an API server with an admission policy that refuses one pod.
func (w *world) watched() *sentPatches {
	sent := &sentPatches{refuses: true}
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-a-0", errors.New("policy images: app:2 is not signed"))
	w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, isPod := object.(*corev1.Pod); isPod {
				sent.trials += len((&client.PatchOptions{}).ApplyOptions(options).DryRun)
				if sent.refuses && object.GetName() == "web-a-0" {
					return denied
				}
			}
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			sent.trials += len((&client.SubResourcePatchOptions{}).ApplyOptions(options).DryRun)
			if subresource == "resize" {
				sent.resizes++
			}
			if _, isPod := object.(*corev1.Pod); isPod && subresource == "status" && object.GetName() == "web-a-0" {
				sent.drains++
			}
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	})
	return sent
}

// failure returns the failures of pods in the status.
func (w *world) failure() string {
	w.t.Helper()
	var texts []string
	for _, f := range w.status().Failures {
		texts = append(texts, f.Pod+" "+f.Reason+": "+f.Message)
	}
	return strings.Join(texts, "; ")
}

const unsigned = "policy images: app:2 is not signed"

func TestAPodThatTheAPIServerRefusesHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(3)
	sent := w.watched()
	w.image("app:2")
	w.rounds(10)
	if got := w.condition("web", v1alpha1.ConditionProgressing); got != "False PodsFailed" || w.condition("web", v1alpha1.ConditionStalled) != "True PodsFailed" {
		t.Errorf("Progressing is %s", got)
	}
	if got := w.failure(); !strings.HasPrefix(got, "web-a-0 Refused: ") || !strings.Contains(got, unsigned) || w.updated() != 0 {
		t.Errorf("failures %q, %d pods are updated", got, w.updated())
	}
	if !w.sent(unsigned) {
		t.Error("no Event")
	}
	if again := w.reconciled("web"); again <= 0 || again > refusedPause {
		t.Errorf("it is looked at again after %s", again)
	}
	sent.refuses = false
	w.now = w.now.Add(refusedPause)
	w.rounds(30)
	if got := w.condition("web", v1alpha1.ConditionReady); got != "True Completed" || w.updated() != 3 || sent.trials != 0 {
		t.Errorf("when it is accepted: %s, %d pods are updated, %d dry runs", got, w.updated(), sent.trials)
	}
}

func TestTheFailurePolicyAppliesToAPodThatTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	for failurePolicy, updated := range map[v1alpha1.UpdateFailurePolicy]int{v1alpha1.UpdateFailureContinue: 2, v1alpha1.UpdateFailureUndo: 0} {
		w := newWorld(t)
		w.grow(3)
		w.watched()
		w.spec(func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.FailurePolicy = failurePolicy })
		w.image("app:2")
		w.rounds(40)
		if w.updated() != updated {
			t.Errorf("%s: %d pods are updated, %s, failures %q", failurePolicy, w.updated(), w.condition("web", v1alpha1.ConditionProgressing), w.failure())
		}
		template := w.deployment().Spec.Template.Spec.Containers[0].Image
		if undone := template == "app:1"; undone != (failurePolicy == v1alpha1.UpdateFailureUndo) {
			t.Errorf("%s: the template has %s", failurePolicy, template)
		}
	}
}

// It would be out of its Services for a minute, again and again.
func TestAPodThatTheAPIServerRefusesIsNotDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gates := []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
	w.set(func(t *corev1.PodTemplateSpec) { t.Spec.ReadinessGates = gates })
	d := w.deployment()
	d.Spec.Template.Spec.ReadinessGates = gates
	w.check(w.Update(t.Context(), d))
	for _, pod := range w.pods() {
		pod.Spec.ReadinessGates = gates
		w.check(w.Update(t.Context(), &pod))
	}
	w.rounds(3)
	sent := w.watched()
	w.image("app:2")
	w.rounds(10)
	if got := w.condition("web", v1alpha1.ConditionProgressing); got != "False PodsFailed" || !strings.Contains(w.failure(), unsigned) || sent.drains != 0 {
		t.Errorf("%s, failures %q, %d writes of the status", got, w.failure(), sent.drains)
	}
	sent.refuses = false
	w.now = w.now.Add(refusedPause + time.Second)
	w.rounds(1)
	if sent.drains == 0 {
		t.Error("it is not drained when the update is accepted")
	}
}

// The policy refit-manager-pods refuses a resize, also as a dry run, before the pod has the record of the update.
func TestNoResizeIsTriedBeforeThePodHasTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(3)
	sent := w.watched()
	sent.refuses = false
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources.Requests = cpu("20m") })
	w.rounds(10)
	if sent.trials > 0 || sent.resizes == 0 {
		t.Errorf("%d dry runs, %d resizes: %s", sent.trials, sent.resizes, w.failure())
	}
}
