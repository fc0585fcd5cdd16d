package inplace_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
	"github.com/refit-project/refit/inplace/record"
)

// A command that is cancelled takes back what it has asked for, and nothing of what another one has begun.
func TestPodStaysOutOfItsServicesWhenACommandIsTakenBackThatIsNotTheOneUnderWay(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), true), false))
	if err := begin(w, 1, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	for w.pod.Spec.Containers[0].Image != "app:2" {
		if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Kind != inplace.KindStep {
			t.Fatalf("%+v, %v", decision, err)
		}
	}
	asked := plan.Changes{Containers: []plan.Change{{Container: "log", Image: "log:2"}}}
	if step, err := inplace.Withdraw(w.pod, asked, w.now); step != nil || err != nil {
		t.Errorf("%+v, %v", step, err)
	}
	w.see()
	w.act()
	w.act()
	w.report() // the new container runs
	if step, err := inplace.Withdraw(w.pod, asked, w.now); step == nil || step.Kind != inplace.StepMarkReady || err != nil {
		t.Errorf("%+v, %v", step, err)
	}
}

// A cancelled command gives the pod back as it was, also a pod that is not ready: the next command would go on with what was left.
func TestWhatIsTakenBackOfAPodThatIsNotReadyIsNotRecordedAnyMore(t *testing.T) {
	t.Parallel()
	for _, ready := range []bool{true, false} {
		w := pullable(newWorld(podOf(plantest.Template(), true), false))
		if err := begin(w, 1, plan.Options{DrainSeconds: 30}); err != nil {
			t.Fatal(err)
		}
		if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Step == nil || decision.Step.Kind != inplace.StepDrain {
			t.Fatalf("%+v, %v", decision, err)
		}
		if ready {
			w.pod.Status.Conditions = append(w.pod.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue})
		}
		step, err := inplace.Withdraw(w.pod, plan.Changes{Containers: []plan.Change{{Container: "app", Image: "app:2"}}}, w.now)
		if err != nil || step == nil || step.Kind != inplace.StepMarkReady {
			t.Fatalf("%+v, %v", step, err)
		}
		if _, err := inplace.Apply(t.Context(), w, w.pod, step); err != nil {
			t.Fatal(err)
		}
		left, err := record.Read(w.pod)
		if c := conditionOf(w.pod, v1beta1.ReadinessGateInPlaceUpdateReady); err != nil || left.Pending() || c.Status != corev1.ConditionTrue {
			t.Errorf("containers ready %t: %v, record %+v, gate %s", ready, err, left, c.Status)
		}
	}
}

func TestOnlyWhatTheRecordHasIsTakenBack(t *testing.T) {
	t.Parallel()
	asked := plan.Changes{Containers: []plan.Change{{Container: "log", Image: "log:2"}}}
	w := pullable(newWorld(podOf(plantest.Template(), true), false))
	if step, err := inplace.Withdraw(w.pod, asked, w.now); step != nil || err != nil {
		t.Errorf("without a record: %+v, %v", step, err)
	}
	if err := begin(w, 1|2, plan.Options{DrainSeconds: 30}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.next(w.pod.DeepCopy()); err != nil { // drains
		t.Fatal(err)
	}
	step, err := inplace.Withdraw(w.pod, asked, w.now)
	if err != nil || step == nil || step.Kind != inplace.StepRecord {
		t.Fatalf("while another change waits: %+v, %v", step, err)
	}
	if _, err := inplace.Apply(t.Context(), w, w.pod, step); err != nil {
		t.Fatal(err)
	}
	if step, err := inplace.Withdraw(w.pod, asked, w.now); step != nil || err != nil {
		t.Errorf("a second time: %+v, %v", step, err)
	}
	w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateGrace] = `{"containerImages":{"log":"log:2"}}`
	asked.Containers[0] = plan.Change{Container: "app", Image: "app:2"}
	if step, err := inplace.Withdraw(w.pod, asked, w.now); step != nil || err != nil {
		t.Errorf("of OpenKruise: %+v, %v", step, err)
	}
}

// What the API server refuses holds up nothing else of the pod.
func TestOnlyWhatIsRefusedIsDropped(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), false), false))
	refused := &inplace.Step{Kind: inplace.StepResize}
	if dropped, err := inplace.Drop(w.pod, refused, w.now); dropped != nil || err != nil {
		t.Errorf("without a record: %+v, %v", dropped, err)
	}
	if err := begin(w, 1|64, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if dropped, err := inplace.Drop(w.pod, refused, w.now); dropped != nil || err != nil {
		t.Errorf("a step that writes none of it: %+v, %v", dropped, err)
	}
	kept := must(record.Read(w.pod))
	refused = inplace.Next(w.pod, kept, nil, w.now).Step
	if refused == nil || refused.Kind != inplace.StepResize {
		t.Fatalf("%+v", refused)
	}
	never := w.pod.DeepCopy()
	never.Annotations = nil
	if dropped, err := inplace.Drop(never, refused, w.now); dropped != nil || err != nil {
		t.Errorf("of a pod that has no record any more: %+v, %v", dropped, err)
	}
	dropped, err := inplace.Drop(w.pod, refused, w.now)
	if err != nil || dropped == nil {
		t.Fatalf("%+v, %v", dropped, err)
	}
	if _, err := inplace.Apply(t.Context(), w, w.pod, dropped); err != nil {
		t.Fatal(err)
	}
	// A step with more labels and annotations is one with what it had before.
	image := inplace.Next(w.pod, must(record.Read(w.pod)), nil, w.now).Step
	if image == nil || image.Kind != inplace.StepWrite {
		t.Fatalf("%+v", image)
	}
	if dropped, err = inplace.Drop(w.pod, image.With(nil, map[string]string{"a": "b"}), w.now); err != nil || dropped == nil || strings.Contains(string(dropped.Patch()), "app:2") {
		t.Errorf("%+v, %v", dropped, err)
	}
	w.finish(t)
	if err := w.wanted(1); err != nil || w.pod.Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("%v; %+v", err, w.pod.Spec.Containers[0].Resources)
	}
	w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = "{"
	if _, err := inplace.Drop(w.pod, refused, w.now); !errors.Is(err, record.ErrMalformed) {
		t.Errorf("%v", err)
	}
}
