package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// backend is a Deployment with a Service and a PodDisruptionBudget of maxUnavailable 1, whose pods are ready so many seconds after the
// start of their container, until one of them goesAway.
type backend struct {
	*fixture
	deployment *appsv1.Deployment
	endpoints  *endpoints
}

func newBackend(t *testing.T, replicas int32, script string, delay int32, change ...func(*corev1.PodSpec)) *backend {
	t.Helper()
	s := &backend{fixture: newFixture(t)}
	pod := s.podOf("web", shell("app", serving(8080, script)))
	pod.Spec.Containers[0].ReadinessProbe = readiness(8080, delay)
	for _, c := range change {
		c(&pod.Spec)
	}
	labels := map[string]string{"app": "web"}
	s.deployment = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	s.deployment.Spec = appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}}
	s.service("web")
	s.endpoints = s.watchEndpoints("web")
	s.check(s.Create(t.Context(), budget), "make PodDisruptionBudget")
	s.check(s.Create(t.Context(), s.deployment), "make Deployment")
	return s
}

func (s *backend) pods(ctx context.Context) []corev1.Pod {
	s.t.Helper()
	var list corev1.PodList
	s.check(s.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{"app": "web"}), "list pods")
	return list.Items
}

// rollout creates a RestartRollout of the Deployment.
func (s *backend) rollout(name string, change ...func(*refitv1alpha1.RestartRolloutSpec)) {
	s.t.Helper()
	object := &refitv1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	object.Spec.TargetRef = &refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	object.Spec.Containers = refitv1alpha1.RolloutContainers("app")
	for _, c := range change {
		c(&object.Spec)
	}
	s.check(s.Create(s.t.Context(), object), "make RestartRollout %s", name)
}

// ended waits until a rollout is complete. Several restarts, one after another, may take longer than patience.
func (s *backend) ended(name string) refitv1alpha1.RestartRolloutStatus {
	s.t.Helper()
	var object refitv1alpha1.RestartRollout
	err := until(s.t.Context(), 3*patience, func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key(name), &object)
		return object.Status.CompletionTime != nil, err
	})
	s.check(err, "wait for the end of RestartRollout %s: %+v", name, object.Status)
	return object.Status
}

func (s *backend) requests(ctx context.Context) []v1beta1.ContainerRecreateRequest {
	s.t.Helper()
	var list v1beta1.ContainerRecreateRequestList
	s.check(s.List(ctx, &list, client.InNamespace(s.namespace)), "list requests")
	return list.Items
}

// awaitStop waits until a container is being stopped.
func (s *backend) awaitStop() {
	s.t.Helper()
	s.await("a stop", func(ctx context.Context) (bool, error) {
		return slices.ContainsFunc(s.requests(ctx), func(r v1beta1.ContainerRecreateRequest) bool {
			return r.Status.Phase == v1beta1.ContainerRecreateRequestRecreating
		}), nil
	})
}

// kept fails the test if fewer endpoints were ready than one less than there are pods.
func (s *backend) kept() {
	s.t.Helper()
	all := int(*s.deployment.Spec.Replicas)
	if least := s.endpoints.least(all); least < all-1 {
		s.t.Errorf("%d of %d endpoints were ready, with maxUnavailable 1 and a PodDisruptionBudget", least, all)
	}
}

func graceOf(seconds int64) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.TerminationGracePeriodSeconds = &seconds }
}

// They became ready while all of them were being stopped: 0 of 3 endpoints for 18 s.
func TestPodsThatHaveJustBeenStartedAreNotRestartedAllAtOnce(t *testing.T) {
	t.Parallel()
	s := newBackend(t, 2, obedient, 10, graceOf(60), func(spec *corev1.PodSpec) {
		spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "15"}}}}
	})
	s.await("running containers", func(ctx context.Context) (bool, error) {
		pods := s.pods(ctx)
		return len(pods) == 2 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return status(&p, "app").State.Running == nil }), nil
	})
	s.rollout("web")
	if got := s.ended("web"); got.RestartedPods != 2 || got.FailedPods != 0 {
		t.Errorf("%+v", got)
	}
	s.kept()
}

// With --min-ready-seconds, four of four were restarted at once when they had become ready a few seconds before.
func TestYoungPodsAreNotRestartedAllAtOnce(t *testing.T) {
	t.Parallel()
	s := newBackend(t, 2, obedient, 3)
	s.endpoints.await(2)
	out, code := s.restart("deployment/web", "--max-unavailable=1", "--min-ready-seconds=15", "--timeout=5m")
	if code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	s.kept()
}

// The others were not ready for 4 s while the first was being restarted, and were all restarted then.
func TestAReadinessBlipOfTheOthersDoesNotHaveThemRestarted(t *testing.T) {
	t.Parallel()
	s := newBackend(t, 3, obedient, 10)
	s.endpoints.await(3)
	s.rollout("web")
	s.endpoints.await(2)
	first := s.requests(t.Context())[0].Spec.PodName
	for _, line := range []string{goesAway, "sleep 4; " + comesBack} {
		for _, pod := range s.pods(t.Context()) {
			if pod.Name != first {
				s.exec(pod.Name, "app", line)
			}
		}
	}
	s.ended("web")
	requests := s.requests(t.Context())
	slices.SortFunc(requests, func(a, b v1beta1.ContainerRecreateRequest) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for i := 1; i < len(requests); i++ {
		if before := requests[i-1].Status.CompletionTime; before == nil || requests[i].CreationTimestamp.Time.Before(before.Time) {
			t.Errorf("pod %s is restarted at %s, the one before until %s", requests[i].Spec.PodName, requests[i].CreationTimestamp, before)
		}
	}
}

// slow pods take 20 s to be killed, and are ready until then.
func newSlow(t *testing.T) *backend {
	t.Helper()
	s := newBackend(t, 2, stubborn, 8, graceOf(20))
	s.endpoints.await(2)
	return s
}

// The next pod was restarted while the container of the first was still being stopped, and the last one after the end.
func TestARequestThatFailsAtItsDeadlineDoesNotStartTheNextRestart(t *testing.T) {
	t.Parallel()
	s := newSlow(t)
	s.rollout("web", func(spec *refitv1alpha1.RestartRolloutSpec) {
		spec.FailurePolicy, spec.Pod.ActiveDeadlineSeconds = refitv1alpha1.RolloutFailureContinue, new(int64(6))
	})
	if got := s.ended("web"); got.FailedPods != 2 || got.RestartedPods != 2 || got.RestartingPods != 0 {
		t.Errorf("%+v", got)
	}
	for _, pod := range s.pods(t.Context()) {
		if n := status(&pod, "app").RestartCount; n != 1 {
			t.Errorf("pod %s: %d restarts at the end of the rollout", pod.Name, n)
		}
	}
	s.kept()
}

// Both were out of service, since the second did not know of what the first had begun.
func TestARolloutThatFollowsAnotherWaitsForWhatThatHasBegun(t *testing.T) {
	t.Parallel()
	for name, follow := range map[string]func(*backend){
		"after its deadline": func(s *backend) {
			s.rollout("first", func(spec *refitv1alpha1.RestartRolloutSpec) { spec.ActiveDeadlineSeconds = new(int64(8)) })
			s.awaitStop()
			s.rollout("second")
			if got := s.ended("first"); got.RestartingPods != 0 || got.RestartedPods != 1 {
				s.t.Errorf("the first: %+v", got)
			}
		},
		"after its deletion": func(s *backend) {
			s.rollout("first")
			s.awaitStop()
			s.run("delete", "restartrollout", "first")
			s.await("the end of its requests", func(ctx context.Context) (bool, error) { return len(s.requests(ctx)) == 0, nil })
			s.rollout("second")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSlow(t)
			follow(s)
			if got := s.ended("second"); got.RestartedPods != 2 {
				t.Errorf("the second: %+v", got)
			}
			s.kept()
		})
	}
}

// Every minute the rollout before was deleted with its requests, while its containers were being stopped.
func TestAScheduleThatReplacesItsRolloutKeepsTheBudget(t *testing.T) {
	t.Parallel()
	s := newBackend(t, 2, stubborn, 20, graceOf(40)) // two restarts take longer than a minute
	s.endpoints.await(2)
	schedule := &refitv1alpha1.RestartSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	schedule.Spec = refitv1alpha1.RestartScheduleSpec{Schedule: "* * * * *", ConcurrencyPolicy: refitv1alpha1.ScheduleReplace}
	schedule.Spec.RolloutTemplate.Spec.TargetRef = &refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	schedule.Spec.RolloutTemplate.Spec.Containers = refitv1alpha1.RolloutContainers("app")
	s.check(s.Create(t.Context(), schedule), "make RestartSchedule")
	err := until(t.Context(), 4*time.Minute, func(ctx context.Context) (bool, error) {
		restarts := int32(0)
		for _, pod := range s.pods(ctx) {
			restarts += status(&pod, "app").RestartCount
		}
		return restarts >= 3, nil
	})
	s.check(err, "wait for three restarts")
	s.kept()
}
