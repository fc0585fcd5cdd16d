package rollout

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
)

// RequestName returns the name of the ContainerRecreateRequest by which a rollout restarts a pod.
func RequestName(rollout *v1alpha1.RestartRollout, pod *corev1.Pod) string {
	hash := fnv.New64a()
	fmt.Fprint(hash, rollout.UID, "/", pod.UID)
	return fmt.Sprintf("%s-%016x", rollout.Name, hash.Sum64())
}

func request(rollout *v1alpha1.RestartRollout, pod *corev1.Pod) *v1beta1.ContainerRecreateRequest {
	template := rollout.Spec.Pod
	deadline := int64(defaultRequestDeadline)
	if template.ActiveDeadlineSeconds != nil {
		deadline = *template.ActiveDeadlineSeconds
	}
	out := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: rollout.Namespace, Name: RequestName(rollout, pod),
		Labels: map[string]string{v1alpha1.LabelRestartRollout: string(rollout.UID)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindRestartRollout, Name: rollout.Name, UID: rollout.UID, Controller: new(true),
		}},
	}}
	for _, key := range []string{v1beta1.AnnotationRequestedBy, v1beta1.AnnotationReason} {
		if text := requester.Printable(rollout.Annotations[key]); text != "" {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, key, text)
		}
	}
	out.Spec = v1beta1.ContainerRecreateRequestSpec{
		PodName: pod.Name, ActiveDeadlineSeconds: &deadline,
		Strategy: &v1beta1.ContainerRecreateRequestStrategy{
			TerminationGracePeriodSeconds: template.TerminationGracePeriodSeconds,
			OrderedRecreate:               template.ContainerOrder == v1alpha1.ContainerOrderReady,
		},
	}
	if seconds := rollout.Spec.DrainSeconds; seconds != nil {
		out.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(*seconds))
	}
	for _, container := range rollout.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: container.Name})
	}
	return out
}

// Owns reports whether the pod belongs to the workload, if the workload's label selector matches it: a Deployment
// controls its pods through ReplicaSets, whose names are derived from its name and the hash of the template.
func Owns(target *v1alpha1.WorkloadReference, uid string, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	if target.Kind == "Deployment" {
		return owner.Kind == "ReplicaSet" && owner.Name == target.Name+"-"+pod.Labels["pod-template-hash"]
	}
	return string(owner.UID) == uid
}

// order returns the comparison for the order of restarts: by name, but pods of a StatefulSet from the highest ordinal
// down, like its controller updates them.
func order(rollout *v1alpha1.RestartRollout) func(a, b *pod) int {
	if target := rollout.Spec.TargetRef; target == nil || target.Kind != "StatefulSet" {
		return func(a, b *pod) int { return strings.Compare(a.Name, b.Name) }
	}
	return func(a, b *pod) int {
		return cmp.Or(cmp.Compare(ordinal(b.Name), ordinal(a.Name)), strings.Compare(a.Name, b.Name))
	}
}

func ordinal(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}

func hasContainer(pod *corev1.Pod, name string) bool {
	return kubelet.ContainerIn(pod.Spec.Containers, name) != nil || kubelet.ContainerIn(pod.Spec.InitContainers, name) != nil
}

// WorkloadReplicas returns the desired number of pods of a workload; 0 if it does not have one.
func WorkloadReplicas(workload *unstructured.Unstructured) int32 {
	field := []string{"spec", "replicas"}
	if workload.GetKind() == "DaemonSet" {
		field = []string{"status", "desiredNumberScheduled"}
	}
	n, _, err := unstructured.NestedInt64(workload.Object, field...)
	if err != nil {
		return 0
	}
	return int32(max(0, min(n, math.MaxInt32)))
}

// WorkloadMinReadySeconds returns spec.minReadySeconds of a workload; 0 if it does not have one.
func WorkloadMinReadySeconds(workload *unstructured.Unstructured) int32 {
	n, _, err := unstructured.NestedInt64(workload.Object, "spec", "minReadySeconds")
	if err != nil {
		return 0
	}
	return int32(max(0, min(n, math.MaxInt32)))
}

// WorkloadSelector returns the label selector of a workload.
func WorkloadSelector(workload *unstructured.Unstructured) (labels.Selector, error) {
	about := "selector of " + workload.GetKind() + " " + workload.GetName()
	content, _, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", about, err)
	}
	var of metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &of); err != nil {
		return nil, fmt.Errorf("%s: %w", about, err)
	}
	selector, err := foreign.Selector(&of)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", about, err)
	}
	return selector, nil
}
