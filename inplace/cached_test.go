package inplace_test

import (
	"fmt"
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
	"github.com/refit-project/refit/internal/kubelet"
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

// report is what the daemon reports about an instance of the container app, long enough not to be kept for its size.
func report(t *testing.T, id string, of *corev1.Container) string {
	t.Helper()
	hash, err := strconv.ParseUint(kubelet.ContainerHash(of), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"containers":[{"name":"app","containerID":%q,"hashes":{"plainHash":%d}},{"name":%q}]}`, id, hash, strings.Repeat("x", 300))
}

func TestACachedPodShowsHowFarTheUpdateOfASidecarIs(t *testing.T) {
	t.Parallel()
	text := `{"log":{"revision":"r","updateTimestamp":"` + midday.Add(-time.Minute).Format(time.RFC3339) + `","lastContainerStatuses":{"app":{"imageID":"1"}},"note":"` + strings.Repeat("x", 300) + `"}}`
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		kind   inplace.Kind
	}{
		"the former image runs":      {func(*corev1.Pod) {}, inplace.KindWait},
		"the image cannot be pulled": {func(pod *corev1.Pod) { setWaiting(pod, "ErrImagePull") }, inplace.KindBlocked},
		"kubelet has not seen it":    {func(pod *corev1.Pod) { setImage(pod, "2"); pod.Status.ObservedGeneration = 1 }, inplace.KindWait},
		"the new image runs":         {func(pod *corev1.Pod) { setImage(pod, "2") }, inplace.KindDone},
		"it is being resized": {func(pod *corev1.Pod) {
			pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = strings.Replace(text, `"revision"`, `"updateResources":true,"revision"`, 1)
			setImage(pod, "2")
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue})
		}, inplace.KindWait},
		"the report names the image": {func(pod *corev1.Pod) {
			pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = report(t, "cri://1", &pod.Spec.Containers[0])
		}, inplace.KindDone},
		"the report names the former": {func(pod *corev1.Pod) { setImage(pod, "2"); reportFormer(t, pod) }, inplace.KindWait},
	} {
		pod := podInCache()
		pod.Annotations[v1beta1.AnnotationSidecarSetList], pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = "log", text
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}
		tt.change(pod)
		for of, pod := range map[string]*corev1.Pod{"pod": pod, "cached pod": cached(pod)} {
			recorded, err := record.ReadSidecars(pod, "log")
			if err != nil || recorded == nil {
				t.Fatalf("%s, %s: %v, %v", name, of, recorded, err)
			}
			known, err := reported.Read(pod)
			if err != nil {
				t.Fatal(err)
			}
			if got := inplace.Next(pod, recorded, known, midday); got.Kind != tt.kind {
				t.Errorf("%s, %s: %s %s, want %s", name, of, got.Kind, got.Message, tt.kind)
			}
		}
	}
}

func setImage(pod *corev1.Pod, id string) {
	status := &pod.Status.ContainerStatuses[0]
	status.Image, status.ImageID, status.ContainerID = pod.Spec.Containers[0].Image, id, "cri://"+id
}

func setWaiting(pod *corev1.Pod, reason string) {
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func reportFormer(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	former := pod.Spec.Containers[0].DeepCopy()
	former.Image = "app:1"
	pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = report(t, "cri://2", former)
}

// The whole decision is compared, with the time to look again.
func TestDecisionsAboutACachedPodAreTheSame(t *testing.T) {
	t.Parallel()
	begun := `{"revision":"r","updateTimestamp":"` + midday.Add(-time.Minute).Format(time.RFC3339) + `","lastContainerStatuses":{"app":{"imageID":"1"}},` +
		`"containerBatchesRecord":[{"timestamp":"2026-11-22T11:59:00Z","containers":["app"]}],"refit":{"instances":{"app":{"containerID":"cri://0","image":"app:1"}},"written":"2026-11-22T11:59:00.000000Z"}}`
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"another instance of an image with the same digest": {func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = new(int64(600)) }, "2026-11-22 12:09:10"},
		"an instance that has ended and is not started again": {func(pod *corev1.Pod) {
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
		}, inplace.BlockedNotRestarted},
		"a pod that was drained": {func(pod *corev1.Pod) {
			setImage(pod, "2")
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: v1beta1.ReadinessGateKruisePodReady, Status: corev1.ConditionFalse, Message: v1beta1.WriteReadinessHolds([]v1beta1.ReadinessHold{v1beta1.HoldOfInPlaceUpdate}),
			})
		}, string(inplace.StepMarkReady)},
	} {
		pod := podInCache()
		pod.Status.Conditions[0].Status = corev1.ConditionFalse
		pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = begun
		tt.change(pod)
		recorded, err := record.Read(pod)
		if err != nil {
			t.Fatal(err)
		}
		decision := next(pod, recorded, nil, midday)
		if text := summary(&decision); !strings.Contains(text, tt.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// OpenKruise's grace period and the report of the daemon are annotations that may be long.
func TestACachedPodHasWhatOthersSayAboutItsUpdate(t *testing.T) {
	t.Parallel()
	updated := midday.Add(-time.Minute).Format(time.RFC3339)
	pad := `,"note":"` + strings.Repeat("x", 300) + `"}`
	for name, change := range map[string]func(*corev1.Pod){
		"grace": func(pod *corev1.Pod) {
			pod.Annotations[v1beta1.AnnotationInPlaceUpdateGrace] = `{"revision":"r","graceSeconds":600` + pad
		},
		"former grace": func(pod *corev1.Pod) {
			pod.Annotations[v1beta1.LegacyAnnotationInPlaceUpdateGrace] = `{"revision":"r","graceSeconds":600` + pad
		},
		"report": func(pod *corev1.Pod) { setImage(pod, "2"); reportFormer(t, pod) },
	} {
		pod := podInCache()
		pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"r","updateTimestamp":"` + updated + `","lastContainerStatuses":{"app":{"imageID":"1"}}}`
		change(pod)
		for of, pod := range map[string]*corev1.Pod{"pod": pod, "cached pod": cached(pod)} {
			recorded, err := record.Read(pod)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, of, err)
			}
			known, err := reported.Read(pod)
			if err != nil {
				t.Fatal(err)
			}
			if got := inplace.Next(pod, recorded, known, midday); got.Kind != inplace.KindWait {
				t.Errorf("%s, %s: %s %s", name, of, got.Kind, got.Message)
			}
		}
	}
}
