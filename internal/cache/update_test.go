package cache_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/rollout/budget"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ordinaryPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "u", Generation: 2, Annotations: map[string]string{}, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:2"}}
	pod.Status.ObservedGeneration = 2
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Image: "app:1", ImageID: "1", ContainerID: "cri://1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return pod
}

// A pod that was not ready for a reason that the cache did not have was never restarted; an update that it did not have made a pod
// count as available.
func TestACachedPodIsForBudgetsWhatThePodIs(t *testing.T) {
	t.Parallel()
	text := `{"revision":"r","updateTimestamp":"` + noon.Add(-time.Minute).Format(time.RFC3339) + `","lastContainerStatuses":{"app":{"imageID":"1"}},` +
		`"refit":{"instances":{"app":{"containerID":"cri://1","image":"app:1"}},"written":"2026-11-22T11:59:00.000000Z"},"note":"` + strings.Repeat("x", 300) + `"}`
	waiting := func(reason string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions[0].Status, pod.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(noon)
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
			pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon)
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := ordinaryPod()
			tt.change(pod)
			trimmed, err := cache.TrimPod(pod)
			if err != nil {
				t.Fatal(err)
			}
			for of, pod := range map[string]*corev1.Pod{"pod": pod, "cached pod": trimmed.(*corev1.Pod)} {
				if got, _ := budget.Observe(pod, nil, 0, noon); got.UnderWay != tt.underWay || got.Stuck != tt.stuck {
					t.Errorf("%s: %+v", of, got)
				}
			}
		})
	}
}

// A resize whose end the cache did not show stopped an update: the cached pod had all resources as soon as the resize began, the pod in
// the API server only when it had ended, which caused no event.
func TestACachedPodShowsHowFarItsUpdateIs(t *testing.T) {
	t.Parallel()
	text := `{"revision":"r","updateTimestamp":"` + noon.Add(-time.Minute).Format(time.RFC3339) + `","updateResources":true,` +
		`"nextContainerResources":{"app":{"requests":{"cpu":"20m"}}},"note":"` + strings.Repeat("x", 300) + `"}`
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")}
	condition := func(of corev1.PodConditionType, reason string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: of, Status: corev1.ConditionTrue, Reason: reason, ObservedGeneration: 2})
		}
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		kind   inplace.Kind
		final  bool
	}{
		"the resize has ended":    {change: func(*corev1.Pod) {}, kind: inplace.KindStep},
		"kubelet has not seen it": {change: func(pod *corev1.Pod) { pod.Status.ObservedGeneration = 1 }, kind: inplace.KindWait},
		"nothing is allocated yet": {change: func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].AllocatedResources[corev1.ResourceCPU] = resource.MustParse("10m")
		}, kind: inplace.KindWait},
		"in progress":           {change: condition(corev1.PodResizeInProgress, ""), kind: inplace.KindWait},
		"it fails":              {change: condition(corev1.PodResizeInProgress, corev1.PodReasonError), kind: inplace.KindBlocked},
		"deferred":              {change: condition(corev1.PodResizePending, corev1.PodReasonDeferred), kind: inplace.KindBlocked},
		"the node is too small": {change: condition(corev1.PodResizePending, corev1.PodReasonInfeasible), kind: inplace.KindBlocked, final: true},
		"the pod has a readiness gate": {change: func(pod *corev1.Pod) {
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}
			condition(corev1.PodResizeInProgress, "")(pod)
		}, kind: inplace.KindWait},
		"OpenKruise's record of an earlier version": {change: func(pod *corev1.Pod) {
			pod.Annotations[v1beta1.LegacyAnnotationInPlaceUpdateState] = text
			delete(pod.Annotations, v1beta1.AnnotationInPlaceUpdateState)
			condition(corev1.PodResizeInProgress, "")(pod)
		}, kind: inplace.KindWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := ordinaryPod()
			pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = text
			pod.Spec.Containers[0].Resources.Requests = cpu
			pod.Status.ContainerStatuses[0].AllocatedResources = cpu.DeepCopy()
			tt.change(pod)
			trimmed, err := cache.TrimPod(pod)
			if err != nil {
				t.Fatal(err)
			}
			for of, pod := range map[string]*corev1.Pod{"pod": pod, "cached pod": trimmed.(*corev1.Pod)} {
				recorded, err := record.Read(pod)
				if err != nil {
					t.Fatalf("%s: %v", of, err)
				}
				if got := inplace.Next(pod, recorded, nil, noon); got.Kind != tt.kind || got.Final != tt.final {
					t.Errorf("%s: %s %s, want %s", of, got.Kind, got.Message, tt.kind)
				}
			}
		})
	}
}

// An image is pulled on nodes with the pull secrets and the pull policy of the pods there.
func TestACachedPodHasWhatAPullOfItsImagesNeeds(t *testing.T) {
	t.Parallel()
	pod := ordinaryPod()
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	trimmed, err := cache.TrimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	if spec := trimmed.(*corev1.Pod).Spec; len(spec.ImagePullSecrets) != 1 || spec.ImagePullSecrets[0].Name != "registry" || spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("secrets %v, policy %q", spec.ImagePullSecrets, spec.Containers[0].ImagePullPolicy)
	}
}

// The environment of an instance is compared with the annotations of the pod: one that is missing would look like an old environment.
func TestACachedPodThatWasUpdatedHasTheAnnotationsOfItsEnvironment(t *testing.T) {
	t.Parallel()
	pod := ordinaryPod()
	long := strings.Repeat("x", 300)
	pod.Annotations["config"], pod.Annotations["other"] = long, long
	pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"r"}`
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['config']"}}}}
	trimmed, err := cache.TrimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	if got := trimmed.(*corev1.Pod).Annotations; got["config"] != long || got["other"] != "" {
		t.Errorf("%d and %d bytes", len(got["config"]), len(got["other"]))
	}
}

func TestARecordThatIsTooLongIsNotCached(t *testing.T) {
	t.Parallel()
	pod := ordinaryPod()
	pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"` + strings.Repeat("x", 17<<10) + `"}`
	trimmed, err := cache.TrimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	if got := trimmed.(*corev1.Pod).Annotations[v1beta1.AnnotationInPlaceUpdateState]; got != "" {
		t.Errorf("%d bytes", len(got))
	}
}
