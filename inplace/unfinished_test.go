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

// As after an update that was taken back when the pod was just about to be drained, and kubelet has not seen it.
func TestPodWithoutAnUpdateIsPutBackIntoItsServices(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), true), false)
	w.pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse},
	}
	decision := inplace.Next(w.pod, nil, nil, w.now)
	if decision.Step == nil || decision.Step.Kind != inplace.StepMarkReady || !strings.Contains(string(decision.Step.Patch), `"status":"True"`) {
		t.Errorf("%+v", decision)
	}
}
