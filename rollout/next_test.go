package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout"
)

func TestPodsAreRestartedOneAfterAnotherFromTheHighestOrdinal(t *testing.T) {
	t.Parallel()
	f := newFixture(11)
	for i := 10; i >= 0; i-- {
		name := f.observed.Pods[i].Name
		if started := f.look(); !cmp.Equal(started, []string{name}) {
			t.Fatalf("%v, want %s", started, name)
		}
		if started := f.look(); started != nil {
			t.Fatalf("%v before %s has been restarted", started, name)
		}
		f.restart(name)
	}
	f.look()
	if s := f.rollout.Status; s.RestartedPods != 11 || s.RestartingPods != 0 || s.CompletionTime == nil {
		t.Errorf("%+v", s)
	}
	for kind, want := range map[string]metav1.ConditionStatus{"Succeeded": "True", "Failed": "False", "Finished": "True", "Progressing": "True"} {
		if status, _ := f.condition(kind); status != want {
			t.Errorf("condition %s is %s", kind, status)
		}
	}
}

func TestRequestsSayWhoAskedAndHow(t *testing.T) {
	t.Parallel()
	f := newFixture(1, func(s *v1alpha1.RestartRolloutSpec) {
		s.Containers = v1alpha1.RolloutContainers("log", "app")
		s.DrainSeconds = new(int32(4))
		s.Pod = v1alpha1.PodRestart{TerminationGracePeriodSeconds: new(int64(3)), ContainerOrder: v1alpha1.ContainerOrderReady}
	})
	f.look()
	request := f.request("web-0")
	if a := request.Annotations; a[v1beta1.AnnotationRequestedBy] != "alice" || a[v1beta1.AnnotationReason] != "leak" {
		t.Errorf("%v", a)
	}
	s := request.Spec
	if *s.ActiveDeadlineSeconds != 600 || *s.Strategy.TerminationGracePeriodSeconds != 3 || *s.Strategy.UnreadyGracePeriodSeconds != 4 || !s.Strategy.OrderedRecreate {
		t.Errorf("%+v", s)
	}
	if s.Containers[0].Name != "log" || s.Containers[1].Name != "app" || request.Labels[v1alpha1.LabelRestartRollout] != "rollout" || !metav1.IsControlledBy(request, f.rollout) {
		t.Errorf("%+v", request)
	}
}

func TestBudgetOfUnavailablePods(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change  func(*v1alpha1.RestartRolloutSpec)
		world   func(*fixture)
		started []string
		reason  string
	}{
		"one at a time":              {func(*v1alpha1.RestartRolloutSpec) {}, func(*fixture) {}, []string{"web-9"}, "MaxUnavailable"},
		"a number":                   {maxUnavailable("3"), func(*fixture) {}, []string{"web-9", "web-8", "web-7"}, "MaxUnavailable"},
		"a percentage, rounded":      {maxUnavailable("25%"), func(*fixture) {}, []string{"web-9", "web-8"}, "MaxUnavailable"},
		"a percentage of less":       {maxUnavailable("1%"), func(*fixture) {}, []string{"web-9"}, "MaxUnavailable"},
		"all at once":                {maxUnavailable("100%"), func(f *fixture) { f.observed.Pods = f.observed.Pods[:2] }, []string{"web-1", "web-0"}, "Restarting"},
		"unavailable pods go first":  {maxUnavailable("2"), func(f *fixture) { setReady(f.pod("web-0"), false, start) }, []string{"web-0", "web-9"}, "MaxUnavailable"},
		"unavailable pods use it up": {maxUnavailable("1"), func(f *fixture) { setReady(f.pod("web-0"), false, start) }, []string{"web-0"}, "MaxUnavailable"},
		"new pods count": {maxUnavailable("1"), func(f *fixture) {
			pod := newPod(99, start.Add(time.Minute))
			setReady(pod, false, start.Add(time.Minute))
			f.observed.Pods = append(f.observed.Pods, pod)
		}, nil, "MaxUnavailable"},
		"ready for too short a time": {func(s *v1alpha1.RestartRolloutSpec) { s.MinReadySeconds = new(int32(60)) }, func(f *fixture) { setReady(f.pod("web-3"), true, start.Add(-time.Second)) }, []string{"web-3"}, "MaxUnavailable"},
		"pods that the workload lacks count": {maxUnavailable("1"), func(f *fixture) {
			f.observed.Replicas = 10 // replicas of a StatefulSet whose pod web-0 is being deleted, or has been
			f.observed.Pods[0].DeletionTimestamp = &metav1.Time{Time: start}
		}, nil, "MaxUnavailable"},
		"ready for less than minReadySeconds of the workload": {func(*v1alpha1.RestartRolloutSpec) {}, func(f *fixture) {
			f.observed.MinReadySeconds = 60
			setReady(f.pod("web-3"), true, start.Add(-time.Second))
		}, []string{"web-3"}, "MaxUnavailable"},
		"minReadySeconds of the rollout instead of the workload's": {func(s *v1alpha1.RestartRolloutSpec) { s.MinReadySeconds = new(int32(0)) }, func(f *fixture) {
			f.observed.MinReadySeconds = 60
			setReady(f.pod("web-3"), true, start.Add(-time.Second))
		}, []string{"web-9"}, "MaxUnavailable"},
		"a percentage of the pods that are to be": {maxUnavailable("30%"), func(f *fixture) {
			f.observed.Replicas, f.observed.Pods = 10, f.observed.Pods[1:]
		}, []string{"web-9", "web-8"}, "MaxUnavailable"},
		"more pods than the workload is to have": {maxUnavailable("1"), func(f *fixture) { f.observed.Replicas = 9 }, []string{"web-9"}, "MaxUnavailable"},
		"paused":                                 {func(s *v1alpha1.RestartRolloutSpec) { s.Paused = true }, func(*fixture) {}, nil, "Paused"},
		"all but the partition": {func(s *v1alpha1.RestartRolloutSpec) {
			s.Partition = new(intstr.FromInt32(8))
			maxUnavailable("100%")(s)
		}, func(*fixture) {}, []string{"web-9", "web-8"}, "Restarting"},
		"a partition in percent, rounded up": {func(s *v1alpha1.RestartRolloutSpec) {
			s.Partition = new(intstr.FromString("75%"))
			maxUnavailable("100%")(s)
		}, func(*fixture) {}, []string{"web-9", "web-8"}, "Restarting"},
		"a partition in percent of the pods that are to be": {func(s *v1alpha1.RestartRolloutSpec) {
			s.Partition = new(intstr.FromString("50%"))
			maxUnavailable("100%")(s)
		}, func(f *fixture) {
			f.observed.Replicas, f.observed.Pods = 16, f.observed.Pods[1:]
		}, []string{"web-9"}, "Restarting"},
		"a partition of all": {func(s *v1alpha1.RestartRolloutSpec) { s.Partition = new(intstr.FromInt32(80)) }, func(*fixture) {}, nil, "Partition"},
		"a disruption budget": {maxUnavailable("5"), func(f *fixture) {
			f.observed.Budgets = []*policyv1.PodDisruptionBudget{budget(2)}
		}, []string{"web-9", "web-8"}, "PodDisruptionBudget"},
		"a disruption budget that is ignored": {func(s *v1alpha1.RestartRolloutSpec) {
			maxUnavailable("2")(s)
			s.PodDisruptionBudgetPolicy = v1alpha1.PodDisruptionBudgetIgnore
		}, func(f *fixture) {
			f.observed.Budgets = []*policyv1.PodDisruptionBudget{budget(0)}
		}, []string{"web-9", "web-8"}, "MaxUnavailable"},
		"a disruption budget of others": {func(*v1alpha1.RestartRolloutSpec) {}, func(f *fixture) {
			other := budget(0)
			other.Spec.Selector.MatchLabels["app"] = "db"
			f.observed.Budgets = []*policyv1.PodDisruptionBudget{other}
		}, []string{"web-9"}, "MaxUnavailable"},
		"a disruption budget whose status is old": {func(*v1alpha1.RestartRolloutSpec) {}, func(f *fixture) {
			old := budget(5)
			old.Generation = 1
			f.observed.Budgets = []*policyv1.PodDisruptionBudget{old}
		}, nil, "PodDisruptionBudget"},
		"no disruption is left, and a pod flickers": {maxUnavailable("5"), func(f *fixture) {
			f.observed.Budgets = []*policyv1.PodDisruptionBudget{budget(0)}
			setReady(f.pod("web-0"), false, start)
		}, nil, "PodDisruptionBudget"},
		"no disruption is left, and a pod cannot come back": {maxUnavailable("5"), func(f *fixture) {
			f.observed.Budgets = []*policyv1.PodDisruptionBudget{budget(0)}
			crash(f.pod("web-0"))
		}, []string{"web-0"}, "PodDisruptionBudget"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(10, tt.change)
			tt.world(f)
			if started := f.look(); !cmp.Equal(started, tt.started) {
				t.Errorf("started %v, want %v", started, tt.started)
			}
			if _, reason := f.condition("Progressing"); reason != tt.reason {
				t.Errorf("Progressing: %s, want %s", reason, tt.reason)
			}
		})
	}
}

func TestPodThatShowsItsOldInstanceIsNotAvailable(t *testing.T) {
	t.Parallel()
	f := newFixture(2)
	f.look()
	old := f.pod("web-1").DeepCopy()
	f.restart("web-1")
	f.observed.Pods[1] = old // the cache is behind
	if started := f.look(); started != nil {
		t.Errorf("%v", started)
	}
}

func TestStopWaitsForTheRestartsUnderWay(t *testing.T) {
	t.Parallel()
	f := newFixture(4, maxUnavailable("2"))
	f.look()
	f.fail("web-3")
	if started := f.look(); started != nil || f.rollout.Status.CompletionTime != nil {
		t.Fatalf("%v, %+v", started, f.rollout.Status)
	}
	f.restart("web-2")
	if f.look(); f.rollout.Status.CompletionTime == nil || f.rollout.Status.RestartedPods != 1 {
		t.Fatalf("%+v", f.rollout.Status)
	}
}

func TestRefusedRequestsAreNotRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(30, func(s *v1alpha1.RestartRolloutSpec) {
		s.FailurePolicy = v1alpha1.RolloutFailureContinue
		maxUnavailable("100%")(s)
	})
	f.look()
	f.observed.Requests = nil // all were refused
	for i := 29; i > 19; i-- {
		f.rollout.Status.Failures = append(f.rollout.Status.Failures, v1alpha1.PodFailure{Pod: f.observed.Pods[i].Name, Reason: rollout.ReasonRefused, Message: "no"})
	}
	if started := f.look(); started != nil || f.rollout.Status.CompletionTime == nil {
		t.Errorf("%v, %+v", started, f.rollout.Status)
	}
}

func TestPodsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	f := newFixture(6, maxUnavailable("100%"))
	f.observed.Pods[0].CreationTimestamp = metav1.NewTime(start.Add(time.Second))
	f.observed.Pods[1].DeletionTimestamp = &metav1.Time{Time: start}
	f.observed.Pods[2].Status.Phase = corev1.PodSucceeded
	f.observed.Pods[3].Status.ContainerStatuses = nil // its containers have not been started: they will be new
	if started := f.look(); !cmp.Equal(started, []string{"web-5", "web-4"}) {
		t.Errorf("%v", started)
	}
}

func TestPodWithoutTheContainerFails(t *testing.T) {
	t.Parallel()
	f := newFixture(2, maxUnavailable("100%"))
	f.observed.Pods[0].Spec.Containers[0].Name = "web"
	if started := f.look(); started != nil {
		t.Errorf("%v", started)
	}
	if failures := f.rollout.Status.Failures; len(failures) != 1 || failures[0].Reason != rollout.ReasonNoContainer || !strings.Contains(failures[0].Message, "app") {
		t.Errorf("%+v", failures)
	}
}

func TestRequestsUnderOpenKruisesCRDHaveNoConditions(t *testing.T) {
	t.Parallel()
	f := newFixture(2, maxUnavailable("100%"), func(s *v1alpha1.RestartRolloutSpec) { s.FailurePolicy = v1alpha1.RolloutFailureContinue })
	f.look()
	f.restart("web-0", "web-1")
	for i, phase := range []v1beta1.ContainerRecreateRequestPhase{v1beta1.ContainerRecreateRequestSucceeded, v1beta1.ContainerRecreateRequestFailed} {
		status := &f.request(f.observed.Pods[i].Name).Status
		status.Conditions, status.ContainerRecreateStates = nil, []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: phase}}
	}
	f.look()
	if s := f.rollout.Status; s.RestartedPods != 2 || s.FailedPods != 1 || s.Failures[0].Pod != "web-1" { // both have other instances
		t.Errorf("%+v", s)
	}
}

func TestPodsOfTheTargetAreOwned(t *testing.T) {
	t.Parallel()
	pod := newPod(0, start)
	pod.Labels["pod-template-hash"] = "abc"
	deployment := &v1alpha1.WorkloadReference{Kind: "Deployment", Name: "web"}
	set := &v1alpha1.WorkloadReference{Kind: "StatefulSet", Name: "web"}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-abc", UID: "x", Controller: new(true)}}
	canary := &v1alpha1.WorkloadReference{Kind: "Deployment", Name: "web-canary"}
	if !rollout.Owns(deployment, "", pod) || rollout.Owns(canary, "", pod) || !rollout.Owns(set, "x", pod) || rollout.Owns(set, "y", pod) {
		t.Error("wrong owner")
	}
	pod.OwnerReferences[0].Name = "web-canary-abc" // both Deployments may select it
	if rollout.Owns(deployment, "", pod) || !rollout.Owns(canary, "", pod) {
		t.Error("a pod of web-canary is none of web")
	}
	pod.OwnerReferences[0].Name, pod.OwnerReferences[0].Kind = "web-abc", "StatefulSet"
	if rollout.Owns(deployment, "", pod) {
		t.Error("a StatefulSet by the name of a ReplicaSet is none")
	}
	pod.OwnerReferences = nil
	if rollout.Owns(deployment, "", pod) || rollout.Owns(set, "", pod) {
		t.Error("a pod without owner is nobody's")
	}
}

func TestNamesOfRequestsDiffer(t *testing.T) {
	t.Parallel()
	f := newFixture(2)
	a, b := rollout.RequestName(f.rollout, f.observed.Pods[0]), rollout.RequestName(f.rollout, f.observed.Pods[1])
	again := newPod(0, start)
	again.UID = "another"
	if names := []string{a, b, rollout.RequestName(f.rollout, again)}; len(slices.Compact(slices.Sorted(slices.Values(names)))) != 3 {
		t.Errorf("%v", names)
	}
}
