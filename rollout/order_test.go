package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// A restart takes least away from who is served where the pod does not serve.
func TestPodsThatDoNotServeAreRestartedFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(4, maxUnavailable("100%"), func(s *v1alpha1.RestartRolloutSpec) { s.MinReadySeconds = new(int32(600)) })
	setReady(f.pod("web-0"), false, start.Add(-time.Hour)) // and cannot come back by itself
	setReady(f.pod("web-1"), false, start.Add(-time.Minute))
	setReady(f.pod("web-2"), true, start.Add(-time.Minute)) // for less than ten minutes
	if started := f.look(); !cmp.Equal(started, []string{"web-0", "web-1", "web-2", "web-3"}) {
		t.Errorf("%v", started)
	}
}

// What does not run has been started never, and comes first.
func TestAPodWhoseContainerDoesNotRunIsTheOldest(t *testing.T) {
	t.Parallel()
	f := newFixture(3, maxUnavailable("100%"))
	f.rollout.Annotations[v1alpha1.AnnotationOldestFirst] = "true"
	for _, pod := range f.observed.Pods {
		pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(start.Add(-time.Hour))
	}
	f.pod("web-1").Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	if started := f.look(); !cmp.Equal(started, []string{"web-1", "web-2", "web-0"}) {
		t.Errorf("%v", started)
	}
}

func TestUnavailablePodsAreNamedUpToThree(t *testing.T) {
	t.Parallel()
	for unavailable, want := range map[int]string{
		0: "4 pods are left; 1 of 5 pods may be unavailable at a time",
		3: "5 pods are left; 1 of 5 pods may be unavailable at a time; unavailable: web-0, web-1, web-2",
		4: "5 pods are left; 1 of 5 pods may be unavailable at a time; unavailable: web-0, web-1, web-2, 1 more",
	} {
		f := newFixture(5)
		for i := range unavailable {
			other := newPod(i, start.Add(-time.Hour))
			f.observed.Pods[i] = other
			setReady(other, true, start)
		}
		f.rollout.Spec.MinReadySeconds = new(int32(600))
		f.now = start.Add(time.Minute)
		f.look()
		if c := meta.FindStatusCondition(f.rollout.Status.Conditions, v1alpha1.ConditionProgressing); c == nil || c.Message != want {
			t.Errorf("%d: %+v, want %q", unavailable, c, want)
		}
	}
}

func TestARolloutSaysWhyThereIsNoPodToRestart(t *testing.T) {
	t.Parallel()
	for pods, want := range map[int]string{0: "there is no pod to be restarted", 2: "there is no pod to be restarted: none of 2 pods is older than the rollout"} {
		f := newFixture(pods)
		for _, pod := range f.observed.Pods {
			pod.CreationTimestamp = metav1.NewTime(start.Add(time.Second))
		}
		f.look()
		if c := meta.FindStatusCondition(f.rollout.Status.Conditions, v1alpha1.ConditionSucceeded); c == nil || c.Message != want {
			t.Errorf("%+v, want %q", c, want)
		}
	}
}

// A job's pod that has ended serves nobody, and one of another workload is not the budget's.
func TestPodsThatADisruptionBudgetDoesNotCountTakeNothingFromIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change  func(*corev1.Pod)
		started []string
	}{
		"it has ended":       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, []string{"web-2"}},
		"it is of another":   {func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }, []string{"web-2"}},
		"it is one of these": {func(*corev1.Pod) {}, nil},
	} {
		f := newFixture(3, maxUnavailable("2"))
		other := newPod(9, start.Add(-time.Hour))
		setReady(other, false, start)
		tt.change(other)
		f.observed.Others = []*corev1.Pod{other}
		f.observed.Budgets = []*policyv1.PodDisruptionBudget{budget(1)}
		f.observed.Budgets[0].Status.CurrentHealthy, f.observed.Budgets[0].Status.ExpectedPods = 4, 4
		if name != "it is one of these" {
			f.observed.Budgets[0].Status.CurrentHealthy, f.observed.Budgets[0].Status.ExpectedPods = 3, 3
		}
		if started := f.look(); !cmp.Equal(started, tt.started) {
			t.Errorf("%s: %v", name, started)
		}
	}
}
