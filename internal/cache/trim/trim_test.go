package trim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/cache/trim"
)

// A pod without the needs of any feature says what it is, and whether it is ready.
func TestWhatIsKeptOfEveryPod(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7", Generation: 2, Labels: map[string]string{"app": "web"},
		Annotations:     map[string]string{"short": "x", "long": strings.Repeat("x", 257)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n"}, {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "r", Controller: new(true)}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}}
	pod.Spec = corev1.PodSpec{NodeName: "n", SchedulerName: "default-scheduler", Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, ObservedGeneration: 2,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "m"}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", ContainerID: "cri://1", Ready: true, RestartCount: 3, Image: "app:1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
	want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7", Generation: 2, Labels: map[string]string{"app": "web"},
		Annotations:     map[string]string{"short": "x", "long": ""},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", UID: "r", Controller: new(true)}},
	}}
	want.Spec = corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "app"}}, InitContainers: []corev1.Container{}}
	want.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, ObservedGeneration: 2, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "app", ContainerID: "cri://1", Ready: true, RestartCount: 3}},
		InitContainerStatuses: []corev1.ContainerStatus{},
	}
	kept, err := trim.NewPods().Transform(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := trim.NewPods().Transform("not a pod"); err == nil {
		t.Error("no error for an object that is not a pod")
	}
}

// What several features need is kept whatever their order is, and the pod stays as it is.
func TestTheOrderOfPartsDoesNotMatter(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": strings.Repeat("x", 300)}}}
	env := make([]corev1.EnvVar, 1, 4)
	env[0] = corev1.EnvVar{Name: "MARK", Value: "true"}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1", Env: env}}
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: "a", Message: "m"}, {Type: "b", Message: "m"}, {Type: corev1.PodReady, Message: "m"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: "app:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "r", Message: "m"}}}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}, Terminated: &corev1.ContainerStateTerminated{}}}}
	some := trim.Part{Keep: func(kept, pod *corev1.Pod) {
		trim.Transition(kept, pod, "b")
		trim.States(kept, pod)
		trim.EachContainer(kept, pod, func(kept, _ *corev1.Container) { trim.Variable(kept, "OTHER", "1") })
	}}
	marks := trim.Part{Keep: func(kept, pod *corev1.Pod) {
		trim.EachContainer(kept, pod, func(kept, _ *corev1.Container) { trim.Variable(kept, "MARK", "true") })
	}}
	whole := trim.Part{Keep: func(kept, pod *corev1.Pod) {
		trim.Annotations(kept, pod, "a", "none")
		trim.Conditions(kept, pod, func(kind corev1.PodConditionType) bool { return kind == "b" })
		trim.Statuses(kept, pod)
		trim.EachContainer(kept, pod, func(kept, c *corev1.Container) { kept.Image = c.Image })
	}}
	before := pod.DeepCopy()
	want := trim.NewPods(some, marks, whole).Of(pod)
	if diff := cmp.Diff(want, trim.NewPods(whole, some, some, whole).Of(pod)); diff == "" {
		t.Error("a part is not seen")
	}
	for _, parts := range [][]trim.Part{{whole, some, marks}, {some, whole, marks, whole, some}, {some, some, marks, marks, whole}} {
		if diff := cmp.Diff(want, trim.NewPods(parts...).Of(pod)); diff != "" {
			t.Errorf("in another order (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(before, pod); diff != "" || env[:4][1].Name != "" {
		t.Errorf("the pod is changed: %s", diff)
	}
	if c := want.Status.Conditions; len(c) != 2 || c[0].Message != "m" || c[1].Message != "" || cap(c) != 2 {
		t.Errorf("conditions %v", c)
	}
}

// Each function for Keep keeps what it names, and nothing else.
func TestWhatTheFunctionsForPartsKeep(t *testing.T) {
	t.Parallel()
	at, rules := metav1.Unix(1e9, 0), []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart}}
	pod := &corev1.Pod{}
	pod.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "gate"}}, SchedulerName: "s",
		Containers: []corev1.Container{{
			Name: "app", Image: "app:1", Command: []string{"c"}, Args: []string{"a"}, Env: []corev1.EnvVar{{Name: "E"}}, WorkingDir: "/",
			Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "r"}}}, ResizePolicy: []corev1.ContainerResizePolicy{{ResourceName: "cpu"}},
			RestartPolicy: new(corev1.ContainerRestartPolicyAlways), RestartPolicyRules: rules,
		}},
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionFalse, LastTransitionTime: at, Message: "m"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "runs", Image: "i", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}, User: &corev1.ContainerUser{}, Resources: &corev1.ResourceRequirements{}, VolumeMounts: []corev1.VolumeMountStatus{{Name: "v"}}},
		{Name: "waits", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "r", Message: "m"}}},
		{Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "m"}}},
	}
	of := func(keep func(kept, pod *corev1.Pod)) *corev1.Pod { return trim.NewPods(trim.Part{Keep: keep}).Of(pod) }
	for name, tt := range map[string]struct {
		keep func(kept, pod *corev1.Pod)
		want func(*corev1.Pod)
	}{
		"nothing": {func(_, _ *corev1.Pod) {}, func(*corev1.Pod) {}},
		"transition": {func(kept, pod *corev1.Pod) { trim.Transition(kept, pod, "gate") }, func(want *corev1.Pod) {
			want.Status.Conditions = []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionFalse, LastTransitionTime: at}}
		}},
		"gates": {trim.ReadinessGates, func(want *corev1.Pod) {
			want.Spec.ReadinessGates, want.Status.Conditions = pod.Spec.ReadinessGates, pod.Status.Conditions
		}},
		"policies": {trim.RestartPolicies, func(want *corev1.Pod) {
			want.Spec.RestartPolicy = corev1.RestartPolicyNever
			want.Spec.Containers[0].RestartPolicy, want.Spec.Containers[0].RestartPolicyRules = new(corev1.ContainerRestartPolicyAlways), rules
		}},
		"fields": {func(kept, pod *corev1.Pod) { trim.EachContainer(kept, pod, trim.UpdatedFields) }, func(want *corev1.Pod) {
			c := pod.Spec.Containers[0].DeepCopy()
			c.WorkingDir, c.RestartPolicy, c.RestartPolicyRules = "", nil, nil
			want.Spec.Containers[0] = *c
		}},
		"states": {trim.States, func(want *corev1.Pod) {
			list := want.Status.ContainerStatuses
			list[0].State.Running = &corev1.ContainerStateRunning{StartedAt: at}
			list[1].State.Waiting = &corev1.ContainerStateWaiting{Reason: "r"}
			list[2].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
		}},
		"statuses": {trim.Statuses, func(want *corev1.Pod) {
			want.Status.ContainerStatuses = pod.DeepCopy().Status.ContainerStatuses
			status := &want.Status.ContainerStatuses[0]
			status.User, status.Resources, status.VolumeMounts = nil, nil, nil
		}},
	} {
		want := of(func(_, _ *corev1.Pod) {})
		if want.Status.Conditions != nil {
			t.Fatalf("conditions %v", want.Status.Conditions)
		}
		tt.want(want)
		if diff := cmp.Diff(want, of(tt.keep)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Whoever may create pods must not fill the memory with them, whatever features keep.
func TestPodsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 40<<10)
	greedy := trim.Part{
		Keep: func(kept, pod *corev1.Pod) {
			trim.Annotations(kept, pod, "a")
			trim.Conditions(kept, pod, func(corev1.PodConditionType) bool { return true })
		},
		Bound: func(bound, kept *corev1.Pod) { bound.Status.Conditions[1] = kept.Status.Conditions[1] },
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": long}}}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
	pod.Spec.NodeName = "n"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: "m"}, {Type: "kept", Message: "m"}, {Type: "other"}}
	got := trim.NewPods(greedy, trim.Part{Keep: func(_, _ *corev1.Pod) {}}).Of(pod)
	if !trim.TooLarge(got) || trim.Size(got) > trim.MaxPod || got.Name != "p" || got.Spec.NodeName != "n" || got.Labels["app"] != "web" || len(got.OwnerReferences) != 1 {
		t.Errorf("%d bytes: %v", trim.Size(got), got)
	}
	if c := got.Status.Conditions; len(c) != 2 || c[0].Status != corev1.ConditionTrue || c[0].Message != "" || c[1].Message != "m" {
		t.Errorf("conditions %v", c)
	}
	pod.Labels["app"], pod.OwnerReferences[0].Name = long, long
	if got := trim.NewPods(greedy).Of(pod); trim.Size(got) > trim.MaxPod || got.Labels != nil || got.OwnerReferences != nil {
		t.Errorf("%d bytes: %v", trim.Size(got), got)
	}
}
