package inplace_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
	"github.com/refit-project/refit/internal/kubelet"
)

// wants plans changes of a pod, as begin does.
func wants(t *testing.T, w *world, bits int, options plan.Options) *plan.Update {
	t.Helper()
	wanted := w.pod.DeepCopy()
	for i, change := range changes {
		if bits&(1<<i) != 0 {
			change(wanted)
		}
	}
	update, err := plan.New(plan.Template(w.pod), plan.Template(wanted), options)
	if err != nil {
		t.Fatal(err)
	}
	return &update
}

// Each write to a pod's metadata or spec costs it up to a second of kubelet's attention.
func TestImageAndRecordAreOneWriteAfterTheDrain(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), true), false))
	w.now = w.now.Add(300 * time.Millisecond) // the condition has whole seconds only: it is of the next one
	update := wants(t, w, 1, plan.Options{})
	for _, want := range []inplace.StepKind{inplace.StepDrain, inplace.StepWrite} {
		step, err := inplace.Start(w.pod, update, w.now)
		if err != nil || step.Kind != want {
			t.Fatalf("%+v, %v: want %s", step, err, want)
		}
		if recorded := strings.Contains(string(step.Patch()), v1beta1.AnnotationInPlaceUpdateState); recorded != (want == inplace.StepWrite) {
			t.Errorf("%s", step.Patch())
		}
		if _, err := inplace.Apply(context.Background(), w, w.pod, step); err != nil {
			t.Fatal(err)
		}
	}
	w.finish(t)
}

// What an interrupted command has left: the pod is drained, and nothing says why.
func TestPodThatWasOnlyDrainedIsUpdatedByTheSameCommand(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), true), false))
	step, err := inplace.Start(w.pod, wants(t, w, 1, plan.Options{}), w.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inplace.Apply(context.Background(), w, w.pod, step); err != nil {
		t.Fatal(err)
	}
	if err := begin(w, 1, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	w.finish(t)
}

func TestPodServesWhileKubeletObservesNewMetadata(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		w := pullable(newWorld(podOf(plantest.Template(), true), known))
		w.publish()
		w.now = w.now.Add(900 * time.Millisecond)
		if err := begin(w, 8, plan.Options{}); err != nil {
			t.Fatal(err)
		}
		w.see()
		decision, err := w.next(w.pod.DeepCopy())
		if c := conditionOf(w.pod, v1beta1.ReadinessGateInPlaceUpdateReady); err != nil || decision.Kind != inplace.KindWait || c != nil && c.Status == corev1.ConditionFalse {
			t.Fatalf("reported %v: %+v, %v, %+v: want a wait with the pod in its Services", known, decision, err, c)
		}
		// A daemon stops no container within 1.5 s after it has seen that the metadata has changed.
		if wait := decision.Again.Sub(w.now); wait < 1550*time.Millisecond || wait > 1700*time.Millisecond {
			t.Errorf("reported %v: drained after %s, want 1.6 s", known, wait)
		}
		w.now = decision.Again
		if decision, err = w.next(w.pod.DeepCopy()); err != nil || decision.Step == nil || decision.Step.Kind != inplace.StepDrain {
			t.Fatalf("reported %v: %+v, %v: want the drain", known, decision, err)
		}
		w.finish(t)
	}
}

// steps simulates a node on which the new instance becomes ready some rounds after it has started, and returns the patches that put
// the pod back into its Services.
func (w *world) patchesThatOpen(t *testing.T, readyAfter int) []string {
	t.Helper()
	var patches []string
	for round := range 20 {
		w.now = w.now.Add(time.Second)
		w.see()
		w.act()
		w.report()
		ready := corev1.ConditionFalse
		if w.instances["app"].image == "app:2" && round >= readyAfter {
			ready = corev1.ConditionTrue
		}
		w.pod.Status.ContainerStatuses[0].Ready = ready == corev1.ConditionTrue
		w.pod.Status.Conditions = slices.DeleteFunc(w.pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.ContainersReady })
		w.pod.Status.Conditions = append(w.pod.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: ready})
		decision, err := w.next(w.pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if decision.Kind == inplace.KindDone {
			return patches
		}
		if decision.Step != nil && decision.Step.Kind == inplace.StepMarkReady {
			patches = append(patches, string(decision.Step.Patch()))
		}
	}
	t.Fatal("never done")
	return nil
}

// kubelet writes Ready a second or more after the containers are ready, when it does not know yet that the gate is open.
func TestReadyIsWrittenAsSoonAsKubeletSaysThatTheContainersAre(t *testing.T) {
	t.Parallel()
	for readyAfter, opens := range map[int]int{0: 1, 5: 2} {
		w := pullable(newWorld(podOf(plantest.Template(), true), false))
		if err := begin(w, 1, plan.Options{}); err != nil {
			t.Fatal(err)
		}
		patches := w.patchesThatOpen(t, readyAfter)
		if len(patches) != opens {
			t.Fatalf("ready after %d rounds: %q", readyAfter, patches)
		}
		for i, patch := range patches {
			last := i == len(patches)-1
			if strings.Contains(patch, `"type":"Ready"`) != last || strings.Contains(patch, `\"opened\":`) != last {
				t.Errorf("ready after %d rounds: %s", readyAfter, patch)
			}
		}
	}
}

// The daemon and a request that act at the same moment would restart the container twice.
func TestNoRestartIsRequestedWhereADaemonReports(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), true), true))
	w.start(&w.pod.Spec.Containers[0]) // the daemon has not reported of this instance yet
	w.report()
	if err := begin(w, 8, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	w.see()
	for range 10 {
		w.now = w.now.Add(time.Second)
		decision, err := w.next(w.pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if decision.Step != nil && decision.Step.Kind == inplace.StepRestart {
			t.Fatalf("%+v", decision.Step)
		}
	}
	w.finish(t)
}

// The first is ready before the next is stopped, and the pod is out of its Services until both are.
func TestNextContainerIsStoppedWhenTheOneBeforeIsReady(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), true), false))
	if err := begin(w, 1|2, plan.Options{Order: [][]string{{"app"}, {"log"}}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.see()
		w.act()
	}
	w.report()
	w.pod.Status.ContainerStatuses[0].Ready = false
	decision, err := w.next(w.pod.DeepCopy())
	if err != nil || decision.Kind != inplace.KindWait || decision.Message != "waiting for container app to be ready" || w.pod.Spec.Containers[1].Image != "log:1" {
		t.Errorf("%s: %s, %v; image of log %s", decision.Kind, decision.Message, err, w.pod.Spec.Containers[1].Image)
	}
	w.pod.Status.ContainerStatuses[0].Ready = true
	if decision, err = w.next(w.pod.DeepCopy()); err != nil || w.pod.Spec.Containers[1].Image != "log:2" {
		t.Errorf("%s: %s, %v; image of log %s", decision.Kind, decision.Message, err, w.pod.Spec.Containers[1].Image)
	}
	w.finish(t)
}

// Seen on a cluster: kubelet wrote Ready True 0.8 s after the drain, from a sync that had begun before it.
func TestPodThatKubeletPutsBackIsDrainedAgain(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), true), false))
	if err := begin(w, 1, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	conditionOf(w.pod, corev1.PodReady).Status = corev1.ConditionTrue
	decision, err := w.next(w.pod.DeepCopy())
	if err != nil || decision.Step == nil || decision.Step.Kind != inplace.StepDrain {
		t.Fatalf("%+v, %v", decision, err)
	}
	if c := conditionOf(w.pod, corev1.PodReady); c.Status != corev1.ConditionFalse {
		t.Errorf("%+v", c)
	}
	if decision.Step.Message != "set Ready to False again: kubelet had not seen the drain when it wrote True" {
		t.Errorf("looks like a second drain: %s", decision.Step.Message)
	}
	w.finish(t)
}

// The daemon restarts by itself only while InPlaceUpdateReady is False: elsewhere the update would wait for ever.
func TestRestartIsRequestedWhereTheDaemonDoesNotRestartByItself(t *testing.T) {
	t.Parallel()
	pod := podOf(plantest.Template(), false)
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
	w := pullable(newWorld(pod, true))
	if err := begin(w, 16, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	var kinds []inplace.StepKind
	for range 5 {
		w.now = w.now.Add(time.Second)
		w.see()
		decision, err := w.next(w.pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if decision.Step != nil {
			kinds = append(kinds, decision.Step.Kind)
		}
		if decision.Kind == inplace.KindWait && len(kinds) == 2 {
			break
		}
	}
	if len(kinds) < 2 || kinds[0] != inplace.StepDrain || kinds[1] != inplace.StepRestart {
		t.Errorf("%v", kinds)
	}
	w.finish(t)
}

// kubelet keeps Ready False, and does not correct it, only if it has synced the pod for the message.
func TestKubeletIsMadeToSyncAPodThatDrainsForAWhileOnly(t *testing.T) {
	t.Parallel()
	const gate = v1beta1.ReadinessGateInPlaceUpdateReady
	for drain, message := range map[int32]string{0: kubelet.GateMessage(gate), 5: kubelet.DrainMessage(gate)} {
		w := pullable(newWorld(podOf(plantest.Template(), true), false))
		if err := begin(w, 1, plan.Options{DrainSeconds: drain}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.next(w.pod.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		c := conditionOf(w.pod, corev1.PodReady)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason != kubelet.ReasonReadinessGatesNotReady || c.Message != message {
			t.Errorf("drain of %d s: %+v", drain, c)
		}
	}
}

func TestStepsSayWhatTheyWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), false), false)
	wanted := w.pod.DeepCopy()
	for _, i := range []int{0, 2, 4, 5, 6} {
		changes[i](wanted)
	}
	wanted.Spec.Containers[1].Resources = plantest.Resources("50m", "")
	update, err := plan.New(plan.Template(w.pod), plan.Template(wanted), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range inplace.Trials(w.pod, &update) {
		got = append(got, step.Message)
	}
	want := []string{
		"resize containers app, log", "change labels and annotations", "set the image of container mesh to mesh:2",
		"change the metadata that container app refers to, set the image of container app to app:2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
