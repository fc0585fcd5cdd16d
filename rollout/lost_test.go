package rollout_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/rollout"
)

// remove deletes pods, as their owner does to replace them.
func (f *fixture) remove(names ...string) {
	f.observed.Pods = slices.DeleteFunc(f.observed.Pods, func(p *corev1.Pod) bool { return slices.Contains(names, p.Name) })
}

// end ends the request of a pod with a failure.
func (f *fixture) end(pod, reason string) {
	crr.Complete(&f.request(pod).Status, crr.Outcome{Reason: reason, Message: "it is so"}, 1, f.now)
}

// Whoever deletes the pod whose restart has failed, to have it replaced, does not begin the restart of further pods.
func TestAFailureCountsAlthoughItsPodIsDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(5, maxUnavailable("2"))
	f.look()
	f.fail("web-4")
	f.look()
	f.now = f.now.Add(time.Second)
	f.remove("web-4")
	f.observed.Pods = append(f.observed.Pods, newPod(5, f.now))
	f.restart("web-3")
	if started := f.look(); started != nil {
		t.Errorf("started %v", started)
	}
	status := f.rollout.Status
	if _, reason := f.condition("Failed"); reason != v1alpha1.ReasonPodsFailed || status.FailedPods != 1 || status.MatchedPods != 4 {
		t.Errorf("%s: %+v", reason, status)
	}
	if failures := status.Failures; len(failures) != 1 || failures[0].Pod != "web-4" || failures[0].Reason != crr.ReasonStopFailed {
		t.Errorf("failures %+v", failures)
	}
}

// Failures of deleted pods are listed in an order that does not change from one look to the next.
func TestFailuresOfDeletedPodsAreInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(4, maxUnavailable("3"), func(s *v1alpha1.RestartRolloutSpec) { s.FailurePolicy = v1alpha1.RolloutFailureContinue })
	f.look()
	f.fail("web-3")
	f.fail("web-1")
	f.fail("web-2")
	f.remove("web-1", "web-2", "web-3")
	f.look()
	var names []string
	for _, failure := range f.rollout.Status.Failures {
		names = append(names, failure.Pod)
	}
	if !slices.Equal(names, []string{"web-1", "web-2", "web-3"}) {
		t.Errorf("failures of %v", names)
	}
}

// Pods of a StatefulSet have the name of the pod before: the names in status.failures are unique, as the CRD requires.
func TestFailuresOfTwoPodsWithOneNameAreOneInTheStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(2, maxUnavailable("2"))
	f.look()
	f.fail("web-1")
	again := f.request("web-1").DeepCopy()
	again.Name += "-2"
	f.observed.Requests = append(f.observed.Requests, again)
	f.remove("web-1")
	f.look()
	f.last.Refuse([]v1alpha1.PodFailure{{Pod: "web-1", Reason: rollout.ReasonRefused}})
	if failures := f.last.Status.Failures; len(failures) != 1 || failures[0].Reason != rollout.ReasonRefused || f.rollout.Status.FailedPods != 2 {
		t.Errorf("%d failed: %+v", f.rollout.Status.FailedPods, failures)
	}
}

// A pod that was deleted during its restart, for example by a drain of its node, has not failed by it.
func TestAPodThatIsDeletedDuringItsRestartIsNoFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(2)
	f.look()
	f.end("web-1", crr.ReasonPodGone)
	f.remove("web-1")
	if started := f.look(); !slices.Equal(started, []string{"web-0"}) {
		t.Fatalf("started %v", started)
	}
	f.restart("web-0")
	f.look()
	if status, _ := f.condition("Succeeded"); status != metav1.ConditionTrue || f.rollout.Status.FailedPods != 0 {
		t.Errorf("%+v", f.rollout.Status)
	}
}

// A container of a Job that exits with code 0 when it is stopped is not started again, so its pod ends: no other pod is
// taken for the same end.
func TestARestartThatEndsItsPodIsAFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(3, func(s *v1alpha1.RestartRolloutSpec) {
		s.TargetRef, s.Selector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	})
	f.look()
	f.stopping("web-0")
	f.pod("web-0").Status.Phase = corev1.PodSucceeded
	setReady(f.pod("web-0"), false, f.now)
	if started := f.look(); started != nil || f.rollout.Status.RestartingPods != 1 {
		t.Errorf("while its request is in progress: started %v, %+v", started, f.rollout.Status)
	}
	f.end("web-0", crr.ReasonRestartPolicyForbidsRestart)
	if started := f.look(); started != nil {
		t.Errorf("after its request: started %v", started)
	}
	if _, reason := f.condition("Failed"); reason != v1alpha1.ReasonPodsFailed || f.rollout.Status.FailedPods != 1 {
		t.Errorf("%s: %+v", reason, f.rollout.Status)
	}
}

// Somebody deletes a request whose container is being stopped: the stop goes on, so the pod is restarted, and only once.
func TestAPodWhoseRequestIsDeletedDuringItsStopIsRestarted(t *testing.T) {
	t.Parallel()
	f := newFixture(2)
	f.look()
	f.stopping("web-1")
	f.request("web-1").DeletionTimestamp = &metav1.Time{Time: f.now}
	if started := f.look(); started != nil || f.rollout.Status.RestartingPods != 1 {
		t.Errorf("while it is stopped: started %v, %+v", started, f.rollout.Status)
	}
	f.replace("web-1")
	if started := f.look(); !slices.Equal(started, []string{"web-0"}) || f.rollout.Status.RestartedPods != 1 {
		t.Errorf("when it runs again: started %v, %+v", started, f.rollout.Status)
	}
	f.restart("web-0")
	if f.look(); f.rollout.Status.RestartedPods != 2 || f.rollout.Status.CompletionTime == nil {
		t.Errorf("at the end: %+v", f.rollout.Status)
	}
}

// A request that is deleted before it has stopped anything is created again.
func TestAPodWhoseRequestIsDeletedBeforeItsStopIsStillRestarted(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.request("web-0").DeletionTimestamp = &metav1.Time{Time: f.now}
	f.now = f.now.Add(time.Minute) // longer than a stop that might have begun
	f.request("web-0").Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending}}
	if started := f.look(); !slices.Equal(started, []string{"web-0"}) {
		t.Errorf("started %v: %+v", started, f.rollout.Status)
	}
	again := f.observed.Requests[1]
	if again.Name != f.observed.Requests[0].Name {
		t.Fatalf("%s and %s", again.Name, f.observed.Requests[0].Name)
	}
	if started := f.look(); started != nil || f.rollout.Status.RestartingPods != 1 {
		t.Errorf("started %v beside the new request: %+v", started, f.rollout.Status)
	}
}
