package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// A second request would have the container stopped again as soon as it runs.
func TestOnlyARestartByAnotherRolloutThatGoesOnIsWaitedFor(t *testing.T) {
	t.Parallel()
	end := func(r *v1beta1.ContainerRecreateRequest) {
		crr.Complete(&r.Status, crr.Outcome{Reason: crr.ReasonDeadlineExceeded, Message: "late"}, 1, start)
	}
	for name, tt := range map[string]struct {
		change func(*v1beta1.ContainerRecreateRequest)
		waits  bool
	}{
		"it goes on":   {func(*v1beta1.ContainerRecreateRequest) {}, true},
		"it has ended": {end, false},
		"it has ended, and its stop not": {func(r *v1beta1.ContainerRecreateRequest) {
			r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{
				Name: "app", ContainerID: "containerd://web-0app", Phase: v1beta1.ContainerRecreateRequestRecreating, StopBegan: &metav1.MicroTime{Time: start},
			}}
			end(r)
		}, true},
		"it has been deleted":     {func(r *v1beta1.ContainerRecreateRequest) { r.DeletionTimestamp = &metav1.Time{Time: start} }, false},
		"it is of a user":         {func(r *v1beta1.ContainerRecreateRequest) { delete(r.Labels, v1alpha1.LabelRestartRollout) }, false},
		"it is of the pod before": {func(r *v1beta1.ContainerRecreateRequest) { r.Labels[v1beta1.LabelPodUID] = "another" }, false},
	} {
		f := newFixture(1)
		request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "other", CreationTimestamp: metav1.NewTime(start), Labels: map[string]string{v1alpha1.LabelRestartRollout: "another"},
		}}
		request.Spec.PodName = "web-0"
		request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}}
		tt.change(request)
		f.observed.Requests = append(f.observed.Requests, request)
		if started := f.look(); (len(started) == 0) != tt.waits {
			t.Errorf("%s: %v", name, started)
		}
	}
}

// Somebody has to act: that is no lack of progress.
func TestARolloutThatHasReachedItsPartitionDoesNotMissItsProgressDeadline(t *testing.T) {
	t.Parallel()
	f := newFixture(2, func(s *v1alpha1.RestartRolloutSpec) { s.Partition = new(intstr.FromInt32(1)) })
	if started := f.look(); !cmp.Equal(started, []string{"web-1"}) {
		t.Fatalf("%v", started)
	}
	f.look()
	f.restart("web-1")
	f.now = f.now.Add(time.Hour)
	for range 2 {
		f.look()
		f.now = f.now.Add(time.Hour)
	}
	if status, reason := f.condition(v1alpha1.ConditionProgressing); status != metav1.ConditionTrue || reason != v1alpha1.ReasonPartition {
		t.Errorf("%s, %s", status, reason)
	}
}

func TestARolloutWithoutAPartitionDoesNotNameOne(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.look()
	if status, reason := f.condition(v1alpha1.ConditionProgressing); status != metav1.ConditionTrue || reason != v1alpha1.ReasonRestarting {
		t.Errorf("%s, %s", status, reason)
	}
}

func TestARolloutWithoutPodsSaysOnlyThat(t *testing.T) {
	t.Parallel()
	f := newFixture(0)
	f.look()
	for _, condition := range f.rollout.Status.Conditions {
		if condition.Type == v1alpha1.ConditionSucceeded && condition.Message != "there is no pod to be restarted" {
			t.Errorf("%q", condition.Message)
		}
	}
	if status, _ := f.condition(v1alpha1.ConditionSucceeded); status != metav1.ConditionTrue {
		t.Errorf("succeeded %s", status)
	}
}

// Nobody knows when it will be ready again, and the rollout goes on with the others.
func TestARolloutDoesNotWaitForAPodWhoseRestartHasFailed(t *testing.T) {
	t.Parallel()
	f := newFixture(1, func(s *v1alpha1.RestartRolloutSpec) { s.FailurePolicy = v1alpha1.RolloutFailureContinue })
	f.look()
	f.fail("web-0")
	setReady(f.pod("web-0"), false, f.now)
	f.now = f.now.Add(time.Minute)
	if f.look(); f.rollout.Status.CompletionTime == nil {
		t.Errorf("%+v", f.rollout.Status)
	}
}

func TestAPodWhoseContainersKubeletDoesNotReportIsNotAvailable(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	f.look()
	f.restart("web-0")
	f.pod("web-0").Status.ContainerStatuses = nil
	if f.look(); f.rollout.Status.CompletionTime != nil {
		t.Errorf("%+v", f.rollout.Status)
	}
}

func TestPodsThatCannotComeBackAreFirstAlsoIfTheOldestAre(t *testing.T) {
	t.Parallel()
	f := newFixture(3)
	f.rollout.Annotations[v1alpha1.AnnotationOldestFirst] = "true"
	for i, ago := range []time.Duration{2 * time.Hour, 3 * time.Hour, time.Hour} {
		f.observed.Pods[i].Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(start.Add(-ago))
	}
	if started := f.look(); !cmp.Equal(started, []string{"web-1"}) {
		t.Errorf("%v, want the oldest", started)
	}
	f = newFixture(3)
	f.rollout.Annotations[v1alpha1.AnnotationOldestFirst] = "true"
	for i, ago := range []time.Duration{2 * time.Hour, 3 * time.Hour, time.Hour} {
		f.observed.Pods[i].Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(start.Add(-ago))
	}
	crash(f.pod("web-2"))
	if started := f.look(); len(started) == 0 || started[0] != "web-2" {
		t.Errorf("%v, want the one that crashes", started)
	}
}

// The cache does not show yet that another controller takes the other pod out.
func TestWhatAnotherControllerBeginsOnAPodOfOthersUsesADisruption(t *testing.T) {
	t.Parallel()
	for begun, want := range map[types.UID]int{"other": 0, "of nobody": 1} {
		f := newFixture(1)
		other := newPod(7, start.Add(-time.Hour))
		other.Name, other.UID = "other", "other"
		f.observed.Others = []*corev1.Pod{other}
		one := budget(1)
		one.Status.CurrentHealthy, one.Status.DesiredHealthy, one.Status.ExpectedPods = 2, 1, 2
		f.observed.Budgets = []*policyv1.PodDisruptionBudget{one}
		f.observed.Begun = func(uid types.UID) bool { return uid == begun }
		if started := f.look(); len(started) != want {
			t.Errorf("%s is begun: %v", begun, started)
		}
	}
}

// What holds up a rollout, and how it has ended, is told with the numbers.
func TestWhatARolloutSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pods      int
		change    func(*v1alpha1.RestartRolloutSpec)
		act       func(*fixture)
		condition string
		want      string
	}{
		"paused, also at its partition": {3, func(s *v1alpha1.RestartRolloutSpec) { s.Paused, s.Partition = true, new(intstr.FromInt32(3)) }, nil, "Progressing", "spec.paused is set: 0 pods are left"},
		"paused":                        {3, func(s *v1alpha1.RestartRolloutSpec) { s.Paused, s.Partition = true, new(intstr.FromInt32(2)) }, nil, "Progressing", "spec.paused is set: 1 pod is left"},
		"at its partition":              {3, func(s *v1alpha1.RestartRolloutSpec) { s.Partition = new(intstr.FromInt32(80)) }, nil, "Progressing", "spec.partition leaves 3 pods as they are"},
		"a pod has failed": {3, maxUnavailable("2"), func(f *fixture) { f.fail("web-2") }, "Progressing",
			"a restart has failed: waiting for the restarts under way to end"},
		"waits for kubelet": {1, nil, func(f *fixture) {
			f.observed.Requests, f.pod("web-0").Status.ContainerStatuses, f.pod("web-0").Spec.NodeName = nil, nil, "n1"
			setReady(f.pod("web-0"), false, start)
		}, "Progressing", "waiting for kubelet to report the containers of 1 pod"},
		"waits for another rollout": {1, nil, func(f *fixture) {
			f.observed.Requests[0].OwnerReferences[0].Name, f.observed.Requests[0].OwnerReferences[0].UID = "another", "another"
			f.observed.Requests[0].Labels[v1alpha1.LabelRestartRollout] = "another"
		}, "Progressing", "waiting for other RestartRollouts to end their restarts of 1 pod: another"},
		"waits for a disruption budget": {3, nil, func(f *fixture) {
			f.restart("web-2")
			f.observed.Budgets = []*policyv1.PodDisruptionBudget{budget(0)}
		}, "Progressing", "PodDisruptionBudget web allows no more disruptions: 2 pods are left"},
		"is late": {3, func(s *v1alpha1.RestartRolloutSpec) { s.ActiveDeadlineSeconds = new(int64(60)) }, func(f *fixture) { f.now = f.now.Add(time.Minute) }, "Progressing",
			"no further pod is restarted: waiting for the restarts under way to end"},
		"makes no progress": {3, func(s *v1alpha1.RestartRolloutSpec) { s.ProgressDeadlineSeconds = new(int32(60)) }, func(f *fixture) { f.now = f.now.Add(time.Minute) }, "Progressing",
			"no pod has been restarted for 1m0s: 2 pods are left; 1 of 3 pods may be unavailable at a time; unavailable: web-2"},
		"ended late": {3, func(s *v1alpha1.RestartRolloutSpec) { s.ActiveDeadlineSeconds = new(int64(60)) }, func(f *fixture) {
			f.restart("web-2")
			f.now = f.now.Add(time.Minute)
		}, "Failed", "1 of 3 pods have been restarted; activeDeadlineSeconds 60 have passed"},
		"ended as it was replaced, and late": {3, func(s *v1alpha1.RestartRolloutSpec) { s.ActiveDeadlineSeconds = new(int64(60)) }, func(f *fixture) {
			f.restart("web-2")
			f.now = f.now.Add(time.Minute)
			f.rollout.Status.Conditions = append(f.rollout.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionReplaced, Status: metav1.ConditionTrue, Message: "RestartRollout next has replaced this one",
			})
		}, "Failed", "1 of 3 pods have been restarted; RestartRollout next has replaced this one"},
		"ended with a failure, and late": {3, func(s *v1alpha1.RestartRolloutSpec) { s.ActiveDeadlineSeconds = new(int64(60)) }, func(f *fixture) {
			f.fail("web-2")
			f.now = f.now.Add(time.Minute)
		}, "Failed", "0 of 3 pods have been restarted, 1 failed; activeDeadlineSeconds 60 have passed"},
		"ended with a failure": {1, nil, func(f *fixture) { f.fail("web-0") }, "Failed", "0 of 1 pods have been restarted, 1 failed; first: pod web-0: StopFailed: runtime is gone"},
		"has no target":        {1, nil, func(f *fixture) { f.observed.TargetGone = true }, "Failed", "StatefulSet web does not exist"},
		"has no target, and its selector cannot be read": {1, nil, func(f *fixture) { f.observed.TargetGone, f.observed.Unreadable = true, "101 labels" }, "Failed", "101 labels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(tt.pods)
			f.rollout.Generation = 7
			if tt.change != nil {
				tt.change(&f.rollout.Spec)
			}
			if f.look(); tt.act != nil {
				tt.act(f)
				f.look()
			}
			c := meta.FindStatusCondition(f.rollout.Status.Conditions, tt.condition)
			if c == nil || c.Message != tt.want || c.ObservedGeneration != 7 || f.rollout.Status.ObservedGeneration != 7 {
				t.Errorf("%+v, want %q", c, tt.want)
			}
		})
	}
}

// Kubernetes' times have no fractions: a pod of the same second may have been created before.
func TestPodsOfTheSecondOfTheRolloutAreRestarted(t *testing.T) {
	t.Parallel()
	f := newFixture(0)
	f.observed.Pods = append(f.observed.Pods, newPod(0, start))
	if started := f.look(); !cmp.Equal(started, []string{"web-0"}) {
		t.Errorf("%v", started)
	}
}

// It was started when the first of its containers was, of those that are to be restarted.
func TestTheOldestContainerSaysHowOldAPodIs(t *testing.T) {
	t.Parallel()
	f := newFixture(3, func(s *v1alpha1.RestartRolloutSpec) {
		s.Containers = v1alpha1.RolloutContainers("app", "log")
		maxUnavailable("100%")(s)
	})
	f.rollout.Annotations[v1alpha1.AnnotationOldestFirst] = "true"
	for i, ago := range [][2]time.Duration{{2 * time.Hour, 2 * time.Hour}, {time.Hour, 3 * time.Hour}, {4 * time.Hour, time.Hour}} {
		for j := range ago {
			f.observed.Pods[i].Status.ContainerStatuses[j].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start.Add(-ago[j]))}
		}
	}
	if started := f.look(); !cmp.Equal(started, []string{"web-2", "web-1", "web-0"}) {
		t.Errorf("%v", started)
	}
}

// The deadline changes no object, so nothing else would cause another look.
func TestARolloutIsLookedAtAgainAtItsDeadline(t *testing.T) {
	t.Parallel()
	f := newFixture(3, func(s *v1alpha1.RestartRolloutSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })
	if f.look(); !f.last.Again.Equal(start.Add(time.Minute)) {
		t.Errorf("again at %s", f.last.Again)
	}
}
