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

// Else `kubectl refit set resources` would say that it is done while something else is in the way of the pod.
func TestResizeThatIsNotWrittenYetIsNotSettled(t *testing.T) {
	t.Parallel()
	const resources = 64
	w := newWorld(podOf(plantest.Template(), false), false)
	if err := begin(w, resources, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	w.seen = w.pod.DeepCopy()
	w.report()
	recorded, err := record.Read(w.pod)
	if err != nil {
		t.Fatal(err)
	}
	if inplace.Settled(w.pod, recorded, nil, w.now, nil, true) {
		t.Error("settled before the resize is written")
	}
	if !inplace.Settled(w.pod, recorded, nil, w.now, []string{"log"}, false) {
		t.Error("a container that the resize does not change has to wait for it")
	}
	w.finish(t)
	if recorded, err = record.Read(w.pod); err != nil || !inplace.Settled(w.pod, recorded, nil, w.now, []string{"app"}, true) {
		t.Errorf("not settled at the end: %v", err)
	}
	w.pod.Status.Conditions = append(w.pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue})
	if inplace.Settled(w.pod, recorded, nil, w.now, []string{"app"}, true) || !inplace.Settled(w.pod, recorded, nil, w.now, []string{"app"}, false) {
		t.Error("while kubelet resizes the containers, the resources are settled, or something else is not")
	}
}

// It would get requests until kubelet can start the new container, which may be ready at any moment and stopped at another.
func TestPodStaysOutOfItsServicesWhileItsNewImageCannotBePulled(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), true), false)
	if err := begin(w, 1, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	w.seen = w.pod.DeepCopy()
	w.report()
	w.pod.Status.ContainerStatuses[0].State = waiting("ImagePullBackOff", "no such image")
	w.pod.Status.ContainerStatuses[0].Ready = false
	decision, err := w.next(w.pod)
	if err != nil || decision.Kind != inplace.KindBlocked || decision.Reason != "ImagePullBackOff" {
		t.Errorf("%+v, %v", decision, err)
	}
}

// It is not started again, so nothing is left to be waited for: the gate must not stay closed.
func TestPodIsPutBackIntoItsServicesWhenAContainerHasEndedForGood(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), true), false)
	if err := begin(w, 1, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	w.seen = w.pod.DeepCopy()
	w.report()
	w.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	w.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	w.pod.Status.ContainerStatuses[0].Ready = false
	recorded, err := record.Read(w.pod)
	if err != nil {
		t.Fatal(err)
	}
	decision := inplace.Next(w.pod, recorded, nil, w.now)
	if decision.Step == nil || decision.Step.Kind != inplace.StepMarkReady {
		t.Errorf("%+v", decision)
	}
}

// For example after an update that was withdrawn just before the drain, which kubelet has not observed.
func TestPodWithoutAnUpdateIsPutBackIntoItsServices(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), true), false)
	w.pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse},
	}
	decision := inplace.Next(w.pod, nil, nil, w.now)
	if decision.Step == nil || decision.Step.Kind != inplace.StepMarkReady || !strings.Contains(string(decision.Step.Patch()), `"status":"True"`) {
		t.Errorf("%+v", decision)
	}
}

// What the first command has begun is not done because a second one asks for something else.
func TestAResizeThatIsRefusedIsNotForgottenByTheNextCommand(t *testing.T) {
	t.Parallel()
	const label, resources = 32, 64
	w := newWorld(podOf(plantest.Template(), false), false)
	if err := begin(w, resources, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.next(w.pod.DeepCopy()); err != nil { // writes the resize
		t.Fatal(err)
	}
	w.see()
	w.report()
	w.pod.Status.Conditions = append(w.pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: "the node has not enough",
	})
	if err := begin(w, label, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	var decision inplace.Decision
	for range 5 {
		var err error
		if decision, err = w.next(w.pod.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if decision.Kind != inplace.KindStep {
			break
		}
	}
	if decision.Kind != inplace.KindBlocked || decision.Message != "the resize waits: the node has not enough" || w.pod.Labels["plain"] != "x" {
		t.Errorf("%s: %s; labels %v", decision.Kind, decision.Message, w.pod.Labels)
	}
}

// The container of the first command is being replaced, or has an environment that is out of date.
func TestTheNextCommandStopsNoContainerBeforeThoseOfTheFirstAreUpdated(t *testing.T) {
	t.Parallel()
	const image, environment, other = 1, 16, 2
	for name, first := range map[string]int{"an image": image, "an environment": environment} {
		w := pullable(newWorld(podOf(plantest.Template(), false), true))
		if err := begin(w, first, plan.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := begin(w, other, plan.Options{}); err != nil {
			t.Fatal(err)
		}
		decision, err := w.next(w.pod.DeepCopy())
		if err != nil || decision.Kind != inplace.KindWait || decision.Container != "app" || w.pod.Spec.Containers[1].Image != "log:1" {
			t.Errorf("%s: %+v, %v; image of log %s", name, decision, err, w.pod.Spec.Containers[1].Image)
		}
		w.finish(t)
		if err := w.wanted(first | other); err != nil || w.stopped["app"] != 1 || w.stopped["log"] != 1 {
			t.Errorf("%s: %v, stopped %v", name, err, w.stopped)
		}
	}
}

func TestPodWhoseGateCannotBeReadIsNotUpdated(t *testing.T) {
	t.Parallel()
	for _, drain := range []int32{0, 5} {
		pod := podOf(plantest.Template(), false)
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateKruisePodReady, Status: corev1.ConditionFalse, Message: "{"}}
		w := pullable(newWorld(pod, false))
		err := begin(w, 1, plan.Options{DrainSeconds: drain})
		if drain == 0 {
			if !errors.Is(err, inplace.ErrNotDrained) || !strings.Contains(err.Error(), "cannot be taken out of its Services") {
				t.Errorf("%v", err)
			}
		} else if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Kind != inplace.KindBlocked || decision.Reason != inplace.BlockedMalformed || !decision.Final {
			t.Errorf("%+v, %v", decision, err)
		}
		if got := w.pod.Spec.Containers[0].Image; got != "app:1" {
			t.Errorf("drain of %d s: image %s", drain, got)
		}
	}
}

// kubelet would leave it as it is, and the update wait for ever.
func TestChangesOfContainersThatHaveEndedAreRefused(t *testing.T) {
	t.Parallel()
	for policy, want := range map[corev1.RestartPolicy]string{
		corev1.RestartPolicyAlways: "", corev1.RestartPolicyOnFailure: "", corev1.RestartPolicyNever: "container app: it has ended with code 3, and with restartPolicy Never kubelet does not start it again; recreate the pod",
	} {
		w := newWorld(podOf(plantest.Template(), false), false)
		update := wants(t, w, 1|2, plan.Options{})
		w.pod.Spec.RestartPolicy = policy
		w.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
		refusals := inplace.Ended(w.pod, update)
		if (len(refusals) == 1) != (want != "") || want != "" && (refusals[0].String() != want || refusals[0].Reason != plan.ReasonContainerEnded || refusals[0].Container != "app") {
			t.Errorf("%s: %v", policy, refusals)
		}
	}
}
