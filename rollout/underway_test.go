package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// A rollout that follows another one: a container is still being stopped for the first.
func TestARestartUnderWayOfARolloutBeforeCounts(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]*metav1.Time{"the first has ended": nil, "the first has been deleted": {Time: start}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newFixture(1)
			first.look()
			first.stopping("web-0")
			request := first.request("web-0")
			request.DeletionTimestamp = deleted
			next := newFixture(3)
			next.rollout.UID, next.rollout.Name = "next", "next"
			next.observed.Requests = []*v1beta1.ContainerRecreateRequest{request}
			if started := next.look(); len(started) > 1 || len(started) == 1 && started[0] != "web-0" || next.rollout.Status.UnavailablePods != 1 {
				t.Errorf("%v, %d unavailable", started, next.rollout.Status.UnavailablePods)
			}
		})
	}
}

// A RestartSchedule with Replace restarted the first pods again and again when its period was shorter than its rollout.
func TestRolloutsThatReplaceEachOtherReachEveryPod(t *testing.T) {
	t.Parallel()
	f := newFixture(5)
	restarts := map[string]int{}
	for i := range 5 { // each restarts one pod, and begins a second before it is replaced
		f.rollout.UID, f.rollout.Name = types.UID(fmt.Sprint(i)), fmt.Sprint("nightly-", i)
		f.rollout.CreationTimestamp, f.rollout.Status = metav1.NewTime(f.now), v1alpha1.RestartRolloutStatus{}
		f.rollout.Annotations = map[string]string{v1alpha1.AnnotationOldestFirst: "true"}
		for range 2 {
			for _, request := range f.observed.Requests { // including the requests of the previous rollout
				if name := request.Spec.PodName; !crr.Completed(request) {
					crr.Complete(&request.Status, crr.Outcome{}, 1, f.now)
					f.replace(name)
					f.pod(name).Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(f.now)
					restarts[name]++
				}
			}
			if started := f.look(); len(started) != 1 {
				t.Fatalf("%v by rollout %d", started, i)
			}
			if started := f.look(); len(started) != 0 {
				t.Fatalf("%v as well by rollout %d", started, i)
			}
			f.now = f.now.Add(time.Minute)
		}
	}
	if want := map[string]int{"web-0": 1, "web-1": 2, "web-2": 2, "web-3": 2, "web-4": 2}; !cmp.Equal(restarts, want) {
		t.Errorf("restarts %v, want %v", restarts, want)
	}
}

// It would have been stopped a second time as soon as it ran again.
func TestAPodThatAnotherRolloutRestartsIsNotTakenBeforeThatHasEnded(t *testing.T) {
	t.Parallel()
	first := newFixture(2)
	first.look()
	next := newFixture(2)
	next.rollout.UID, next.rollout.Name = "next", "next"
	next.observed = first.observed
	if started := next.look(); len(started) != 0 {
		t.Fatalf("%v", started)
	}
	crr.Complete(&first.request("web-1").Status, crr.Outcome{}, 1, start)
	if started := next.look(); !cmp.Equal(started, []string{"web-1"}) {
		t.Errorf("%v", started)
	}
}

func TestARequestThatFailsAtItsDeadlineDoesNotFreeTheBudget(t *testing.T) {
	t.Parallel()
	f := newFixture(4, func(s *v1alpha1.RestartRolloutSpec) { s.FailurePolicy = v1alpha1.RolloutFailureContinue })
	f.look()
	f.stopping("web-3")
	f.now = start.Add(8 * time.Second)
	crr.Complete(&f.request("web-3").Status, crr.Outcome{Reason: crr.ReasonDeadlineExceeded, Message: "too slow"}, 1, f.now)
	if started := f.look(); len(started) != 0 || f.rollout.Status.RestartingPods != 1 || f.rollout.Status.UnavailablePods != 1 || f.last.Again.IsZero() {
		t.Fatalf("%v, %+v, again %s", started, f.rollout.Status, f.last.Again)
	}
	f.replace("web-3") // killed and started again
	setReady(f.pod("web-3"), false, f.now)
	if started := f.look(); len(started) != 0 {
		t.Fatalf("%v while the new instance is not ready", started)
	}
	setReady(f.pod("web-3"), true, f.now)
	if started := f.look(); !cmp.Equal(started, []string{"web-2"}) || f.rollout.Status.RestartedPods != 1 || f.rollout.Status.RestartingPods != 0 {
		t.Errorf("%v, %+v", started, f.rollout.Status)
	}
}

func TestARolloutIsCompleteOnlyWhenNothingIsUnderWay(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.stopping("web-0")
	crr.Complete(&f.request("web-0").Status, crr.Outcome{Reason: crr.ReasonDeadlineExceeded, Message: "too slow"}, 1, f.now)
	if f.look(); f.rollout.Status.CompletionTime != nil || f.rollout.Status.RestartingPods != 1 {
		t.Fatalf("%+v", f.rollout.Status)
	}
	f.replace("web-0")
	f.look()
	s := f.rollout.Status
	if s.CompletionTime == nil || s.RestartedPods != 1 || s.FailedPods != 1 || s.RestartingPods != 0 {
		t.Fatalf("%+v", s)
	}
	if message := s.Conditions[len(s.Conditions)-1].Message; !strings.Contains(message, "1 of 1 pods have been restarted, 1 failed, of which 1 were restarted after all") {
		t.Error(message)
	}
}

// The webhook was away when the request was created: that an instance runs says nothing of the one that was to be replaced.
func TestAPodIsNotCalledRestartedIfItIsNotKnownWhatWasToBeReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.request("web-0").Spec.Containers[0].StatusContext = nil
	crr.Complete(&f.request("web-0").Status, crr.Outcome{Reason: crr.ReasonInvalidRequest, Message: "it has not passed admission"}, 1, f.now)
	f.look()
	s := f.rollout.Status
	if s.CompletionTime == nil || s.RestartedPods != 0 || s.FailedPods != 1 {
		t.Fatalf("%+v", s)
	}
	if message := s.Conditions[len(s.Conditions)-1].Message; !strings.HasPrefix(message, "0 of 1 pods have been restarted, 1 failed") {
		t.Error(message)
	}
}

func TestARolloutThatEndsAtItsDeadlineSaysAtTheEndWhatWasRestarted(t *testing.T) {
	t.Parallel()
	f := newFixture(3, func(s *v1alpha1.RestartRolloutSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })
	f.look()
	f.now = start.Add(time.Minute)
	if started := f.look(); started != nil || f.rollout.Status.CompletionTime != nil || f.rollout.Status.RestartingPods != 1 {
		t.Fatalf("%v, %+v", started, f.rollout.Status)
	}
	f.restart("web-2")
	if started := f.look(); started != nil || f.rollout.Status.CompletionTime == nil || f.rollout.Status.RestartingPods != 0 || f.rollout.Status.RestartedPods != 1 {
		t.Fatalf("%v, %+v", started, f.rollout.Status)
	}
	if _, reason := f.condition("Failed"); reason != v1alpha1.ReasonDeadlineExceeded {
		t.Error(reason)
	}
}

func TestAReplacedRolloutEndsWhenWhatItHasBegunHasEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(3)
	f.look()
	f.rollout.Status.Conditions = append(f.rollout.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReplaced, Status: metav1.ConditionTrue})
	if started := f.look(); started != nil || f.rollout.Status.CompletionTime != nil {
		t.Fatalf("%v, %+v", started, f.rollout.Status)
	}
	f.restart("web-2")
	if started := f.look(); started != nil || f.rollout.Status.CompletionTime == nil {
		t.Fatalf("%v, %+v", started, f.rollout.Status)
	}
	if _, reason := f.condition("Failed"); reason != v1alpha1.ReasonReplaced {
		t.Error(reason)
	}
}

// kubelet reports containers up to 12 s after their start.
func TestPodsWhoseContainersAreNotReportedYetAreWaitedFor(t *testing.T) {
	t.Parallel()
	unreported := func() *fixture {
		f := newFixture(1)
		f.pod("web-0").Spec.NodeName, f.pod("web-0").Status.ContainerStatuses = "node", nil
		setReady(f.pod("web-0"), false, start.Add(-15*time.Second))
		return f
	}
	f := unreported()
	if f.look(); f.rollout.Status.CompletionTime != nil || !f.last.Again.Equal(start.Add(30*time.Second)) {
		t.Fatalf("%+v", f.last)
	}
	reported := newPod(0, start)
	f.pod("web-0").Status.ContainerStatuses = reported.Status.ContainerStatuses
	if started := f.look(); !cmp.Equal(started, []string{"web-0"}) {
		t.Errorf("%v", started)
	}
	f = unreported()
	f.look()
	f.now = start.Add(30 * time.Second)
	if f.look(); f.rollout.Status.CompletionTime == nil {
		t.Error("does not end for a pod that is never reported")
	}
	f = unreported()
	f.pod("web-0").Spec.NodeName = ""
	if f.look(); f.rollout.Status.CompletionTime == nil {
		t.Error("waits for a pod that has no node")
	}
}

// Their containers have never run: nothing is to be restarted, which is not to be read as "the workload has no pods".
func TestARolloutThatFindsOnlyPodsThatHaveNotStartedSaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(2)
	for _, name := range []string{"web-0", "web-1"} {
		f.pod(name).Spec.NodeName = "node"
		f.pod(name).Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		}}
		setReady(f.pod(name), false, start)
	}
	f.look()
	want := "no pod has been restarted: 2 of 2 pods are older than the rollout and have not started their containers"
	if got := meta.FindStatusCondition(f.rollout.Status.Conditions, v1alpha1.ConditionFinished); got == nil || got.Message != want {
		t.Errorf("got %+v, want the message %q", got, want)
	}
	if status, reason := f.condition("Failed"); status != metav1.ConditionTrue || reason != "NotStarted" {
		t.Errorf("Failed is %q, %s: kubectl wait and the exit code of kubectl refit restart do not tell", status, reason)
	}
}

// Pods that are younger than the rollout are as the restart would have made them.
func TestARolloutThatFindsOnlyYoungerPodsHasNothingToDo(t *testing.T) {
	t.Parallel()
	f := newFixture(0)
	f.observed.Pods = append(f.observed.Pods, newPod(0, start.Add(time.Minute)))
	f.look()
	if status, reason := f.condition("Succeeded"); status != metav1.ConditionTrue || reason != "NoPods" {
		t.Errorf("Succeeded is %q, %s", status, reason)
	}
}

func TestARolloutSaysHowManyPodsHaveNotStarted(t *testing.T) {
	t.Parallel()
	f := newFixture(2)
	f.pod("web-0").Status.ContainerStatuses = nil
	setReady(f.pod("web-0"), false, start)
	f.rollout.Spec.MaxUnavailable = new(intstr.FromInt32(2))
	f.look()
	f.restart("web-1")
	f.look()
	want := "1 of 1 pods have been restarted; 1 of 2 have not started their containers"
	if got := meta.FindStatusCondition(f.rollout.Status.Conditions, v1alpha1.ConditionSucceeded); got == nil || got.Message != want {
		t.Errorf("got %+v, want the message %q", got, want)
	}
}
