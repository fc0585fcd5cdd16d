package budget_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/rollout/budget"
)

// cached returns what a cache keeps of a pod for budgets.
func cached(pod *corev1.Pod) *corev1.Pod {
	return trim.NewPods(trim.Part{Keep: budget.Keep, Bound: budget.Bound}).Of(pod.DeepCopy())
}

// observe observes a pod, and checks that the result is the same with the pod as a cache has it.
func observe(t *testing.T, pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, minReady time.Duration, now time.Time) (budget.Pod, recheck.At) {
	t.Helper()
	want, at := budget.Observe(pod, requests, minReady, now)
	got, again := budget.Observe(cached(pod), requests, minReady, now)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || !again.Equal(at.Time) {
		t.Errorf("the cached pod, again at %s instead of %s (-pod +cached):\n%s", again, at, diff)
	}
	return want, at
}

var midday = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func servingPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "u", Generation: 2, Annotations: map[string]string{}, CreationTimestamp: metav1.NewTime(midday.Add(-time.Hour))}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:2"}}
	pod.Status.ObservedGeneration = 2
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(midday.Add(-time.Hour))}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Image: "app:1", ImageID: "1", ContainerID: "cri://1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return pod
}

// A pod that was not ready for a reason that the cache did not have was never restarted; an update that it did not have made a pod
// count as available.
func TestACachedPodIsForBudgetsWhatThePodIs(t *testing.T) {
	t.Parallel()
	text := `{"revision":"r","updateTimestamp":"` + midday.Add(-time.Minute).Format(time.RFC3339) + `","lastContainerStatuses":{"app":{"imageID":"1"}},` +
		`"refit":{"instances":{"app":{"containerID":"cri://1","image":"app:1"}},"written":"2026-11-22T11:59:00.000000Z"},"note":"` + strings.Repeat("x", 300) + `"}`
	waiting := func(reason string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions[0].Status, pod.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(midday)
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "back-off"}}
		}
	}
	for name, tt := range map[string]struct {
		change          func(*corev1.Pod)
		underWay, stuck bool
	}{
		"ready":                              {change: func(*corev1.Pod) {}},
		"in CrashLoopBackOff":                {change: waiting("CrashLoopBackOff"), stuck: true},
		"being created":                      {change: waiting("ContainerCreating")},
		"a change that kubelet has not seen": {change: func(pod *corev1.Pod) { pod.Generation = 3 }, underWay: true},
		"an update in place":                 {change: func(pod *corev1.Pod) { pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = text }, underWay: true},
		"an update in place that is complete": {change: func(pod *corev1.Pod) {
			pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = text
			status := &pod.Status.ContainerStatuses[0]
			status.Image, status.ImageID, status.ContainerID = "app:2", "2", "cri://2"
		}},
		"has ended and is not started again": {change: func(pod *corev1.Pod) {
			pod.Spec.RestartPolicy, pod.Status.Conditions[0].Status = corev1.RestartPolicyNever, corev1.ConditionFalse
			pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(midday)
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := servingPod()
			tt.change(pod)
			if got, _ := observe(t, pod, nil, 0, midday); got.UnderWay != tt.underWay || got.Stuck != tt.stuck {
				t.Errorf("%+v", got)
			}
		})
	}
}
