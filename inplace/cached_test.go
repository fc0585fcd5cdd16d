package inplace_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/cache/trim"
)

// cached returns what a cache keeps of a pod for updates in place.
func cached(pod *corev1.Pod) *corev1.Pod {
	return trim.NewPods(trim.Part{Keep: inplace.KeepProgress}).Of(pod.DeepCopy())
}

// next decides about a recorded update of a pod, and checks that the decision is the same with the pod as a cache has it.
func next(pod *corev1.Pod, kept *record.Record, known reported.Containers, now time.Time) inplace.Decision {
	decision := inplace.Next(pod, kept, known, now)
	if recorded, err := record.Read(pod); err != nil || recorded == nil || kept == nil {
		return decision // it is not in the pod
	}
	got := inplace.Next(cached(pod), kept, known, now)
	if of, is := summary(&decision), summary(&got); of != is {
		panic("with the cached pod: " + is + "; with the pod: " + of)
	}
	return decision
}

func summary(d *inplace.Decision) string {
	text := strings.Join([]string{string(d.Kind), d.Container, d.Reason, d.Message, d.Again.String(), strconv.FormatBool(d.Final), strconv.FormatBool(d.Delayed)}, ", ")
	if d.Step != nil {
		text += ", " + string(d.Step.Kind) + " " + d.Step.Message
	}
	return text
}

var midday = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func podInCache() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "u", Generation: 2, Annotations: map[string]string{}, CreationTimestamp: metav1.NewTime(midday.Add(-time.Hour))}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:2"}}
	pod.Status.ObservedGeneration = 2
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(midday.Add(-time.Hour))}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Image: "app:1", ImageID: "1", ContainerID: "cri://1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return pod
}

// A resize whose end the cache did not show stopped an update: the cached pod had all resources as soon as the resize began, the pod in
// the API server only when it had ended, which caused no event.
func TestACachedPodShowsHowFarItsUpdateIs(t *testing.T) {
	t.Parallel()
	text := `{"revision":"r","updateTimestamp":"` + midday.Add(-time.Minute).Format(time.RFC3339) + `","updateResources":true,` +
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
			pod := podInCache()
			pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = text
			pod.Spec.Containers[0].Resources.Requests = cpu
			pod.Status.ContainerStatuses[0].AllocatedResources = cpu.DeepCopy()
			tt.change(pod)
			for of, pod := range map[string]*corev1.Pod{"pod": pod, "cached pod": cached(pod)} {
				recorded, err := record.Read(pod)
				if err != nil {
					t.Fatalf("%s: %v", of, err)
				}
				if got := inplace.Next(pod, recorded, nil, midday); got.Kind != tt.kind || got.Final != tt.final {
					t.Errorf("%s: %s %s, want %s", of, got.Kind, got.Message, tt.kind)
				}
			}
		})
	}
}

// The environment of an instance is compared with the annotations of the pod: one that is missing would look like an old environment.
func TestACachedPodThatWasUpdatedHasTheAnnotationsOfItsEnvironment(t *testing.T) {
	t.Parallel()
	pod := podInCache()
	long := strings.Repeat("x", 300)
	pod.Annotations["config"], pod.Annotations["other"] = long, long
	pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"r"}`
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['config']"}}}}
	if got := cached(pod).Annotations; got["config"] != long || got["other"] != "" {
		t.Errorf("%d and %d bytes", len(got["config"]), len(got["other"]))
	}
}

func TestARecordThatIsTooLongIsNotCached(t *testing.T) {
	t.Parallel()
	pod := podInCache()
	pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"` + strings.Repeat("x", 17<<10) + `"}`
	if got := cached(pod).Annotations[v1beta1.AnnotationInPlaceUpdateState]; got != "" {
		t.Errorf("%d bytes", len(got))
	}
}
