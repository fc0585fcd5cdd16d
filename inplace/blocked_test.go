package inplace_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
)

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// decisionAfter begins an update, lets kubelet see it and report, and returns what is decided about the changed pod.
func decisionAfter(t *testing.T, bits int, change func(*corev1.Pod)) inplace.Decision {
	t.Helper()
	w := newWorld(podOf(plantest.Template(), false), false)
	if err := begin(w, bits, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.next(w.pod); err != nil { // a resize is written after its record
		t.Fatal(err)
	}
	w.seen = w.pod.DeepCopy()
	w.report()
	change(w.pod)
	decision, err := w.next(w.pod)
	if err != nil {
		t.Fatal(err)
	}
	return decision
}

// Users see these messages while they wait, and an update that is only slow must not be called blocked.
func TestNextSaysWhatItWaitsForAndWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	const image, resources = 1, 64
	state := func(s corev1.ContainerState) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = s }
	}
	condition := func(c corev1.PodCondition) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.Conditions = append(pod.Status.Conditions, c) }
	}
	for name, tt := range map[string]struct {
		bits    int
		change  func(*corev1.Pod)
		kind    inplace.Kind
		message string
		final   bool
	}{
		"the container is being created": {image, state(waiting("ContainerCreating", "")), inplace.KindWait, "waiting for kubelet to start container app with app:2", false},
		"init containers run":            {image, state(waiting("PodInitializing", "")), inplace.KindWait, "waiting for kubelet to start container app", false},
		"kubelet gives no reason":        {image, state(waiting("", "")), inplace.KindWait, "waiting for kubelet to start container app", false},
		"the image may not be pulled":    {image, state(waiting("ErrImageNeverPull", "not present")), inplace.KindBlocked, "container app: not present", true},
		"the pull is tried again":        {image, state(waiting("ErrImagePull", "a\n  b")), inplace.KindBlocked, "container app: a b", false},
		"kubelet has not reported it": {image, func(pod *corev1.Pod) { pod.Status.ContainerStatuses = nil }, inplace.KindWait,
			"waiting for kubelet to report container app", false},
		"kubelet has not seen it": {image, func(pod *corev1.Pod) { pod.Status.ObservedGeneration = pod.Generation - 1 }, inplace.KindWait,
			"waiting for kubelet to see the change of container app", false},
		"the resize is under way": {resources, condition(corev1.PodCondition{Type: corev1.PodResizeInProgress}), inplace.KindWait, "waiting for kubelet to resize", false},
		"the resize has failed": {resources, condition(corev1.PodCondition{Type: corev1.PodResizeInProgress, Reason: corev1.PodReasonError, Message: "no cgroup"}),
			inplace.KindBlocked, "the resize failed and is tried again: no cgroup", false},
		"an older resize had to wait": {resources, condition(corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible, ObservedGeneration: 1}),
			inplace.KindStep, "resize is over", false},
		"an older resize is under way": {resources, condition(corev1.PodCondition{Type: corev1.PodResizeInProgress, ObservedGeneration: 1}), inplace.KindStep, "resize is over", false},
		"this resize has to wait": {resources, condition(corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonDeferred, ObservedGeneration: 2, Message: "later"}),
			inplace.KindBlocked, "the resize waits: later", false},
		"a resize waits while the one before is under way": {resources, func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress}, corev1.PodCondition{Type: corev1.PodResizePending, Message: "later"})
		}, inplace.KindBlocked, "the resize waits: later", false},
		"the resources are not allocated": {resources, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].AllocatedResources = corev1.ResourceList{corev1.ResourceCPU: plantest.Resources("100m", "").Requests[corev1.ResourceCPU]}
		}, inplace.KindWait, "waiting for kubelet to allocate the new resources of container app", false},
		"the memory is not allocated": {resources, func(pod *corev1.Pod) {
			was := &pod.Status.ContainerStatuses[0]
			was.AllocatedResources = pod.Spec.Containers[0].Resources.Requests.DeepCopy()
			was.AllocatedResources[corev1.ResourceMemory] = resource.MustParse("64Mi")
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("128Mi")
		}, inplace.KindWait, "waiting for kubelet to allocate the new resources of container app", false},
		"kubelet does not say what is allocated": {resources, func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].AllocatedResources = nil }, inplace.KindStep, "resize is over", false},
		"a resized container is not reported":    {resources, func(pod *corev1.Pod) { pod.Status.ContainerStatuses = nil }, inplace.KindWait, "waiting for kubelet to start container app with its new resources", false},
		"another was down before it was resized": {resources, func(pod *corev1.Pod) {
			log := &pod.Status.ContainerStatuses[1]
			log.State, log.AllocatedResources = corev1.ContainerState{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}, inplace.KindStep, "resize is over", false},
		"a resized container is down": {resources, state(corev1.ContainerState{}), inplace.KindWait, "waiting for kubelet to start container app with its new resources", false},
		"a resized container crashes": {resources, state(waiting("CrashLoopBackOff", "back-off")), inplace.KindBlocked, "container app: back-off", false},
		"another container is down": {resources, func(pod *corev1.Pod) { pod.Status.ContainerStatuses[1].State = corev1.ContainerState{} }, inplace.KindStep,
			"resize is over", false},
		"kubelet has not seen the resources": {resources, func(pod *corev1.Pod) { pod.Status.ObservedGeneration = pod.Generation - 1 }, inplace.KindWait,
			"waiting for kubelet to see the new resources", false},
		"the pod has ended":  {image, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }, inplace.KindBlocked, "is being deleted or has ended", true},
		"the pod has failed": {image, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, inplace.KindBlocked, "is being deleted or has ended", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decisionAfter(t, tt.bits, tt.change)
			if got.Kind != tt.kind || !strings.Contains(got.Message, tt.message) || got.Final != tt.final {
				t.Errorf("%s %q, final %t; want %s %q, final %t", got.Kind, got.Message, got.Final, tt.kind, tt.message, tt.final)
			}
		})
	}
}

// A runtime may give a page of text, which would be repeated in conditions and Events.
func TestMessagesOfKubeletAreOneShortLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 300) // 600 bytes
	got := decisionAfter(t, 1, func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = waiting("ErrImagePull", long) })
	if !strings.HasSuffix(got.Message, "é…") || len(got.Message) > 530 {
		t.Errorf("%d bytes: %s", len(got.Message), got.Message)
	}
	whole := strings.Repeat("x", 500)
	got = decisionAfter(t, 1, func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = waiting("ErrImagePull", whole) })
	if !strings.HasSuffix(got.Message, whole) {
		t.Errorf("what fits was cut: %s", got.Message)
	}
}

// OpenKruise keeps the update in another annotation until the pod has drained.
func TestUpdateOfOpenKruiseThatDrainsIsContinuedWhenItHasDrained(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		patch   string
		after   time.Duration
		kind    inplace.Kind
		reason  string
		message string
	}{
		"it drains":                     {"", 4 * time.Second, inplace.KindWait, "", "draining until 2001-09-09T01:46:45Z"},
		"it has drained":                {"", 5 * time.Second, inplace.KindStep, "", "continue the update that OpenKruise has begun"},
		"what follows cannot be read":   {`,"metaDataPatch":"e30xIQ=="`, 5 * time.Second, inplace.KindBlocked, inplace.BlockedMalformed, v1beta1.AnnotationInPlaceUpdateGrace},
		"that does not matter until it": {`,"metaDataPatch":"e30xIQ=="`, 4 * time.Second, inplace.KindWait, "", "draining until"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(podOf(plantest.Template(), true), false)
			w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"k","updateTimestamp":"2001-09-09T01:46:40Z"}`
			w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateGrace] = `{"revision":"k","containerImages":{"app":"app:2"},"graceSeconds":5` + tt.patch + `}`
			begun := w.now
			w.now = begun.Add(tt.after)
			got, err := w.next(w.pod.DeepCopy())
			if err != nil || got.Kind != tt.kind || got.Reason != tt.reason || !strings.Contains(got.Message, tt.message) || got.Final != (tt.kind == inplace.KindBlocked) {
				t.Fatalf("%+v, %v", got, err)
			}
			if tt.kind == inplace.KindWait && !got.Again.Equal(begun.Add(5*time.Second)) {
				t.Errorf("again at %s", got.Again)
			}
		})
	}
}

// Changes that the API server would refuse in the middle of an update are found before it begins.
func TestTrialsAreTheWritesOfAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), false), false)
	var got []string
	for _, step := range inplace.Trials(w.pod, wants(t, w, 1|32|64, plan.Options{})) {
		got = append(got, string(step.Kind)+" "+step.Subresource+": "+step.Message)
		if !json.Valid(step.Patch()) || !strings.Contains(string(step.Patch()), `"resourceVersion":"`+w.pod.ResourceVersion+`"`) {
			t.Errorf("%s", step.Patch())
		}
	}
	if want := []string{"Resize resize: resize container app", "Write : change labels and annotations", "Write : set the image of container app to app:2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// failing is an API server that has another pod by now, or refuses.
type failing struct {
	pod    *corev1.Pod
	err    error
	stored string // resource version after a write
}

func (f failing) Pod(context.Context, string, string) (*corev1.Pod, error) { return f.pod, f.err }
func (f failing) PatchPod(context.Context, *corev1.Pod, string, []byte) (*corev1.Pod, error) {
	stored := f.pod.DeepCopy()
	if stored != nil {
		stored.ResourceVersion = cmp.Or(f.stored, "8")
	}
	return stored, f.err
}
func (f failing) Restart(context.Context, *corev1.Pod, inplace.Instance) error { return f.err }

func TestStepsThatFailAreNamedAndLeaveThePodAsItWas(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid", ResourceVersion: "7"}}
	refused := errors.New("refused")
	other := func(change func(*corev1.Pod)) *corev1.Pod {
		out := pod.DeepCopy()
		change(out)
		return out
	}
	for name, tt := range map[string]struct {
		kind inplace.StepKind
		api  failing
		want error
		same bool // the pod is returned that was decided about
	}{
		"restart":                {inplace.StepRestart, failing{}, nil, true},
		"a restart fails":        {inplace.StepRestart, failing{err: refused}, refused, true},
		"drain":                  {inplace.StepDrain, failing{pod: pod.DeepCopy()}, nil, false},
		"the pod cannot be read": {inplace.StepDrain, failing{err: refused}, refused, true},
		"another pod":            {inplace.StepDrain, failing{pod: other(func(p *corev1.Pod) { p.UID = "next" })}, inplace.ErrChanged, false},
		"the pod has changed":    {inplace.StepDrain, failing{pod: other(func(p *corev1.Pod) { p.ResourceVersion = "8" })}, inplace.ErrChanged, false},
		"write":                  {inplace.StepWrite, failing{pod: pod.DeepCopy()}, nil, false},
		"nothing is stored":      {inplace.StepResize, failing{pod: pod.DeepCopy(), stored: "7"}, inplace.ErrStoredNothing, false},
		"a write fails":          {inplace.StepWrite, failing{err: refused}, refused, true},
	} {
		got, err := inplace.Apply(t.Context(), tt.api, pod, &inplace.Step{Kind: tt.kind, Message: "do it"})
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || err != nil && !strings.HasPrefix(err.Error(), "do it: ") {
			t.Errorf("%s: %v", name, err)
		}
		if (got == pod) != tt.same {
			t.Errorf("%s: returns %+v", name, got)
		}
	}
	restart := &inplace.Step{Kind: inplace.StepRestart, Message: "restart container app"}
	if got, err := inplace.Write(t.Context(), failing{}, pod, restart); got != pod || !errors.Is(err, inplace.ErrRestart) {
		t.Errorf("a restart is written: %+v, %v", got, err)
	}
}
