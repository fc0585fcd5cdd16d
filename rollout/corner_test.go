package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/rollout"
)

// message returns the message of a condition.
func (f *fixture) message(kind string) string {
	if condition := meta.FindStatusCondition(f.rollout.Status.Conditions, kind); condition != nil {
		return condition.Message
	}
	return ""
}

func TestARolloutSaysThatItWaitsForReportsOfKubeletOnlyIfItDoes(t *testing.T) {
	t.Parallel()
	f := newFixture(2, maxUnavailable("100%"))
	f.pod("web-1").Status.ContainerStatuses = nil
	setReady(f.pod("web-1"), false, start)
	f.pod("web-1").Spec.NodeName = "n1"
	if started := f.look(); !cmp.Equal(started, []string{"web-0"}) {
		t.Errorf("started %v, want the pod that is reported", started)
	}
	f = newFixture(1)
	f.look()
	f.look()
	if got, want := f.message("Progressing"), "every pod that is to be restarted has a ContainerRecreateRequest"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Ten refusals are an API server that takes no requests. Ten failed restarts are not, if the rollout is to go on after failures.
func TestManyFailuresDoNotStopARolloutThatIsToContinue(t *testing.T) {
	t.Parallel()
	f := newFixture(12, maxUnavailable("100%"), func(s *v1alpha1.RestartRolloutSpec) { s.FailurePolicy = v1alpha1.RolloutFailureContinue })
	f.look()
	f.observed.Requests = f.observed.Requests[:rollout.MaxFailures]
	for _, request := range f.observed.Requests {
		f.fail(request.Spec.PodName)
	}
	if started := f.look(); len(started) != 2 {
		t.Errorf("started %v, %+v", started, f.rollout.Status)
	}
}

func TestARolloutBearsNineRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(12, maxUnavailable("100%"), func(s *v1alpha1.RestartRolloutSpec) { s.FailurePolicy = v1alpha1.RolloutFailureContinue })
	for i := range rollout.MaxFailures - 1 {
		f.rollout.Status.Failures = append(f.rollout.Status.Failures, v1alpha1.PodFailure{Pod: fmt.Sprint("web-", i), Reason: rollout.ReasonRefused, Message: "no"})
	}
	if started := f.look(); len(started) != 3 {
		t.Errorf("started %v", started)
	}
}

func TestARolloutDoesNotWaitForYoungerPodsThatKubeletHasNotReported(t *testing.T) {
	t.Parallel()
	f := newFixture(0)
	young := newPod(0, start.Add(time.Second))
	young.Spec.NodeName, young.Status.ContainerStatuses = "n1", nil
	setReady(young, false, start.Add(time.Second))
	f.observed.Pods = append(f.observed.Pods, young)
	if f.look(); f.rollout.Status.CompletionTime == nil {
		t.Errorf("%+v", f.rollout.Status)
	}
}

func TestEachRestartIsProgress(t *testing.T) {
	t.Parallel()
	f := newFixture(3)
	f.look()
	for _, pod := range []string{"web-2", "web-1"} {
		f.now = f.now.Add(9 * time.Minute)
		f.restart(pod)
		f.look()
		if status, reason := f.condition("Progressing"); status != metav1.ConditionTrue {
			t.Fatalf("after %s: %s, %s", pod, status, reason)
		}
	}
	f.now = f.now.Add(10 * time.Minute)
	f.look()
	if status, reason := f.condition("Progressing"); status != metav1.ConditionFalse || reason != v1alpha1.ReasonNoProgress {
		t.Errorf("after ten minutes without a restart: %s, %s", status, reason)
	}
}

func TestARolloutThatHasRestartedAllPodsSaysOnlyThat(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.restart("web-0")
	f.look()
	if got := f.message("Succeeded"); got != "1 of 1 pods have been restarted" {
		t.Errorf("%q", got)
	}
}

// For example if the API server returned an error although it had stored the request.
func TestAPodIsNotRefusedIfItHasItsRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.rollout.Status.Failures = []v1alpha1.PodFailure{{Pod: "web-0", Reason: rollout.ReasonRefused, Message: "timeout"}}
	f.restart("web-0")
	f.look()
	if s := f.rollout.Status; s.RestartedPods != 1 || s.FailedPods != 0 {
		t.Errorf("%+v", s)
	}
}

// A request counts if it has the name for this rollout and this pod, and is the rollout's.
func TestOnlyTheRequestOfThisRolloutForThisPodCounts(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.restart("web-0")
	f.request("web-0").OwnerReferences = nil
	if f.look(); f.rollout.Status.RestartedPods != 0 {
		t.Errorf("the request of somebody else counts: %+v", f.rollout.Status)
	}
	f = newFixture(1)
	f.look()
	f.restart("web-0")
	f.observed.Pods[0] = newPod(0, start.Add(time.Minute)) // the StatefulSet has replaced it
	f.observed.Pods[0].UID = "another"
	if f.look(); f.rollout.Status.MatchedPods != 0 {
		t.Errorf("the request for the previous pod counts: %+v", f.rollout.Status)
	}
}

func TestAPodWhoseNewContainerHasNoIDYetIsNotAvailable(t *testing.T) {
	t.Parallel()
	f := newFixture(2)
	f.look()
	f.restart("web-1")
	f.pod("web-1").Status.ContainerStatuses[0].ContainerID = ""
	if started := f.look(); started != nil {
		t.Errorf("started %v", started)
	}
}

func TestAPodIsNotCalledRestartedIfTheInstanceBeforeIsNotKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.request("web-0").Spec.Containers[0].StatusContext.ContainerID = ""
	crr.Complete(&f.request("web-0").Status, crr.Outcome{Reason: crr.ReasonStopFailed, Message: "runtime is gone"}, 1, f.now)
	f.look()
	if s := f.rollout.Status; s.RestartedPods != 0 || s.FailedPods != 1 {
		t.Errorf("%+v", s)
	}
}

func TestNativeSidecarsAreRestarted(t *testing.T) {
	t.Parallel()
	f := newFixture(1, func(s *v1alpha1.RestartRolloutSpec) { s.Containers = v1alpha1.RolloutContainers("mesh") })
	pod := f.pod("web-0")
	pod.Spec.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh", ContainerID: "containerd://mesh", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	d := rollout.Next(f.rollout, f.observed, f.now)
	if len(d.Start) != 1 || len(d.Status.Failures) > 0 {
		t.Errorf("%s", fmt.Sprint(d.Start, d.Status.Failures))
	}
}

func TestThePodsThatHaveRunForLongestAreFirstOnlyIfThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		oldest string
		want   []string
	}{
		"by name":        {"", []string{"web-0", "web-3", "web-2", "web-1"}},
		"oldest first":   {"true", []string{"web-0", "web-1", "web-2", "web-3"}},
		"no other value": {"yes", []string{"web-0", "web-3", "web-2", "web-1"}},
	} {
		f := newFixture(4, maxUnavailable("100%"))
		f.rollout.Annotations[v1alpha1.AnnotationOldestFirst] = tt.oldest
		for i, age := range []time.Duration{time.Minute, 4 * time.Hour, 3 * time.Hour, 2 * time.Hour} {
			status := &f.observed.Pods[i].Status.ContainerStatuses[0]
			status.State.Running.StartedAt = metav1.NewTime(start.Add(-age))
		}
		setReady(f.pod("web-0"), false, start.Add(-time.Minute)) // it does not serve, and is taken first whatever its age
		if started := f.look(); !cmp.Equal(started, tt.want) {
			t.Errorf("%s: %v, want %v", name, started, tt.want)
		}
	}
}

// The status names ten failures. Pods whose requests were refused are known from nowhere else, so they come before those that have failed.
func TestARefusalIsRememberedWhenManyPodsFail(t *testing.T) {
	t.Parallel()
	f := newFixture(13, func(s *v1alpha1.RestartRolloutSpec) {
		s.FailurePolicy = v1alpha1.RolloutFailureContinue
		maxUnavailable("100%")(s)
	})
	f.look()
	f.observed.Requests = slices.DeleteFunc(f.observed.Requests, func(r *v1beta1.ContainerRecreateRequest) bool { return r.Spec.PodName == "web-0" })
	f.rollout.Status.Failures = []v1alpha1.PodFailure{{Pod: "web-0", Reason: rollout.ReasonRefused, Message: "no"}}
	for i := 11; i > 0; i-- { // web-12 is being restarted
		f.fail(fmt.Sprintf("web-%d", i))
	}
	for range 2 {
		if started := f.look(); started != nil || f.rollout.Status.FailedPods != 12 {
			t.Fatalf("%v, %+v", started, f.rollout.Status)
		}
	}
	if first := f.rollout.Status.Failures[0]; first.Pod != "web-0" {
		t.Errorf("%+v", first)
	}
}
