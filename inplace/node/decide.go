package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/kubelet"
)

// instance is what the runtime reports about a container's current instance.
type instance struct {
	hash  string // kubelet's hash, from the annotation of the container
	image string // the image in the spec when the instance was created
	env   map[string]string
	noEnv bool // the runtime does not report the environment
}

// instances holds instances by the container ID in the pod's status.
type instances map[string]instance

// current returns the statuses of the pod's containers that have an instance, in spec order.
func current(pod *corev1.Pod) []*corev1.ContainerStatus {
	var list []*corev1.ContainerStatus
	for i := range pod.Spec.Containers {
		s := kubelet.StatusIn(pod.Status.ContainerStatuses, pod.Spec.Containers[i].Name)
		if s != nil && s.ContainerID != "" && s.State.Running != nil {
			list = append(list, s)
		}
	}
	return list
}

// report returns the value of the annotation, or "" if nothing is known about any container.
func report(pod *corev1.Pod, known instances) (string, error) {
	set := v1beta1.RuntimeContainerMetaSet{}
	for _, status := range current(pod) {
		is, ok := known[status.ContainerID]
		if !ok {
			continue
		}
		plain, err := strconv.ParseUint(is.hash, 16, 64)
		if err != nil {
			return "", fmt.Errorf("hash %q of container %s: %w", is.hash, status.Name, err)
		}
		set.Containers = append(set.Containers, v1beta1.RuntimeContainerMeta{
			Name: status.Name, ContainerID: status.ContainerID, RestartCount: status.RestartCount,
			Hashes: v1beta1.RuntimeContainerHashes{PlainHash: plain, ExtractedEnvFromMetadataHash: envHash(pod, status.Name, is)},
		})
	}
	if len(set.Containers) == 0 {
		return "", nil
	}
	text, err := json.Marshal(set)
	return string(text), err
}

// envHash returns the hash of the instance's environment, or 0 if the environment is not known.
func envHash(pod *corev1.Pod, container string, is instance) uint64 {
	if is.noEnv {
		return 0
	}
	return reported.MetadataEnvHash(kubelet.ContainerIn(pod.Spec.Containers, container), func(env reported.MetadataEnv) string { return is.env[env.Name] })
}

// stops returns the containers to restart now because their environment does not match the pod's metadata: those
// without a launch priority, and those with the highest priority if all containers above them are ready. It leaves out
// containers whose image changes as well: kubelet restarts them with the new environment, so they are only stopped
// once.
func stops(pod *corev1.Pod, known instances) []*corev1.ContainerStatus {
	if !updating(pod) {
		return nil
	}
	var now []*corev1.ContainerStatus
	ordered := map[int64][]*corev1.ContainerStatus{}
	for _, status := range current(pod) {
		is, ok := known[status.ContainerID]
		spec := kubelet.ContainerIn(pod.Spec.Containers, status.Name)
		if !ok || is.noEnv || len(reported.MetadataEnvs(spec)) == 0 || imageChanges(spec, is) || envHash(pod, status.Name, is) == reported.ExpectedEnvHash(spec, pod) {
			continue
		}
		if priority, has := plan.LaunchPriority(spec); has {
			ordered[priority] = append(ordered[priority], status)
		} else {
			now = append(now, status)
		}
	}
	if len(ordered) == 0 {
		return now
	}
	highest := slices.Max(slices.Collect(maps.Keys(ordered)))
	for i := range pod.Spec.Containers {
		if priority, has := plan.LaunchPriority(&pod.Spec.Containers[i]); has && priority > highest && !ready(pod, pod.Spec.Containers[i].Name) {
			return now
		}
	}
	return append(now, ordered[highest]...)
}

// changes reports whether an input of containers has changed: an image, or an environment variable from labels and
// annotations.
func changes(was, is *corev1.Pod) bool {
	return !slices.EqualFunc(was.Spec.Containers, is.Spec.Containers, func(a, b corev1.Container) bool {
		return a.Image == b.Image && reported.ExpectedEnvHash(&a, was) == reported.ExpectedEnvHash(&b, is)
	})
}

// updating reports whether the pod is being updated in place, according to the condition that controllers and
// kubectl-refit set. So an annotation that a user edits restarts nothing.
func updating(pod *corev1.Pod) bool {
	gate := kubelet.Condition(&pod.Status, v1beta1.ReadinessGateInPlaceUpdateReady)
	return pod.DeletionTimestamp == nil && gate != nil && gate.Status == corev1.ConditionFalse
}

func ready(pod *corev1.Pod, container string) bool {
	status := kubelet.StatusIn(pod.Status.ContainerStatuses, container)
	return status != nil && status.Ready
}

// imageChanges reports whether kubelet will restart the instance because of its image. Kubelets before 1.31 hash more
// than the image, so a different hash alone is not enough.
func imageChanges(spec *corev1.Container, is instance) bool {
	return kubelet.ContainerHash(spec) != is.hash && spec.Image != is.image
}
