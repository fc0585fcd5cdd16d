package inplace_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
	"github.com/refit-project/refit/inplace/record"
)

// sidecars carries the update of a SidecarSet out, and returns how often the pod's spec or metadata were written.
func sidecars(t *testing.T, w *world, bits int) (writes int) {
	t.Helper()
	wanted := w.pod.DeepCopy()
	for i, change := range changes {
		if bits&(1<<i) != 0 {
			change(wanted)
		}
	}
	update, err := plan.New(plan.Template(w.pod), plan.Template(wanted), plan.Options{Revision: "hash", Order: [][]string{{"mesh", "app", "log"}}})
	if err != nil {
		t.Fatal(err)
	}
	before, err := record.ReadSidecars(w.pod, "log")
	if err != nil {
		t.Fatal(err)
	}
	step := inplace.BeginSidecars(w.pod, "log", before, &update, nil, w.now)
	for range 50 {
		if step != nil {
			if writes++; step.Kind == inplace.StepDrain || step.Kind == inplace.StepMarkReady {
				t.Errorf("step %s: the readiness gate belongs to the pod's own update", step.Kind)
			}
			if _, err := inplace.Apply(t.Context(), w, w.pod, step); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := record.ReadSidecars(w.pod, "log")
		if err != nil {
			t.Fatal(err)
		}
		decision := inplace.Next(w.pod, kept, nil, w.now)
		if decision.Kind == inplace.KindDone {
			return writes
		}
		if step = decision.Step; step == nil {
			w.see()
			w.act()
			w.act()
			w.report()
		}
	}
	t.Fatal("the update does not end")
	return writes
}

func TestImagesOfSidecarsAreUpdatedByOneWrite(t *testing.T) {
	t.Parallel()
	pod := podOf(plantest.Template(), true)
	pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = `{"mesh":{"revision":"other","lastContainerStatuses":{"mesh":{"imageID":"sha"}}}}`
	w := pullable(newWorld(pod, false))
	if writes := sidecars(t, w, 1<<1|1<<2); writes != 1 {
		t.Errorf("%d writes", writes)
	}
	if err := w.truth(); err != nil {
		t.Error(err)
	}
	if text := w.pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState]; !strings.Contains(text, `"mesh":{"revision":"other"`) {
		t.Errorf("the record of another SidecarSet is lost: %s", text)
	}
	if kept, err := record.Read(w.pod); kept != nil || err != nil {
		t.Errorf("the record of the pod's own update was written: %+v, %v", kept, err)
	}
}

func TestResourcesOfSidecarsAreInPlaceBeforeTheImage(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), false), false))
	if writes := sidecars(t, w, 1<<0|1<<6); writes != 4 { // record, resize, image, record
		t.Errorf("%d writes", writes)
	}
	if err := w.truth(); err != nil {
		t.Error(err)
	}
}

func TestResourcesOfSidecarsAloneAreResized(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), false), false))
	if writes := sidecars(t, w, 1<<6); writes != 3 { // record, resize, record
		t.Errorf("%d writes", writes)
	}
	if err := w.wanted(1 << 6); err != nil || w.stopped["app"] > 0 {
		t.Errorf("%v, stopped %v", err, w.stopped)
	}
}

// The gate belongs to the owner of the pod.
func TestResizeOfASidecarThatWaitsLeavesTheGateAsItIs(t *testing.T) {
	t.Parallel()
	pod, recorded := updatedPod()
	recorded.SidecarSet, recorded.State.UpdateResources = "log", true
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}, {Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse},
	}
	if got := inplace.Next(pod, recorded, nil, morning); got.Kind != inplace.KindBlocked || got.Reason != corev1.PodReasonInfeasible {
		t.Errorf("%s: %s", got.Kind, got.Message)
	}
}
