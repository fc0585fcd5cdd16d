package cli

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/console"
)

// checkContainers refuses a container that none of the pods has, because a rollout would fail for each of them. It
// ignores pods that have ended, or are about to end.
func checkContainers(target Target, pods []*corev1.Pod, containers []string) error {
	pods = slices.DeleteFunc(slices.Clone(pods), leaving)
	var has []string
	for _, pod := range pods {
		for _, name := range restartable(pod) {
			if !slices.Contains(has, name) {
				has = append(has, name)
			}
		}
	}
	for _, name := range containers {
		if len(pods) > 0 && !slices.Contains(has, name) {
			return fmt.Errorf("%w: the pods of %s have no container %q that can be restarted; they have %s", console.ErrUsage, target, name, strings.Join(has, ", "))
		}
	}
	return nil
}

// restartable returns the containers of a pod that kubelet restarts after a stop.
func restartable(pod *corev1.Pod) []string {
	var names []string
	for _, container := range pod.Spec.Containers {
		names = append(names, container.Name)
	}
	for _, container := range pod.Spec.InitContainers {
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			names = append(names, container.Name)
		}
	}
	return names
}

// checkDrain refuses to drain pods that cannot be made not ready: the drain would have no effect.
func checkDrain(seconds *int32, pods ...*corev1.Pod) error {
	if seconds == nil || *seconds == 0 {
		return nil
	}
	for _, pod := range pods {
		if !leaving(pod) && !podrules.HasReadinessGate(pod) {
			return fmt.Errorf("%w: pod %s has no readiness gate %s, so it cannot be drained: add readinessGates to its template, or leave --drain-seconds out",
				console.ErrUsage, pod.Name, v1beta1.ReadinessGateKruisePodReady)
		}
	}
	return nil
}

// leaving reports whether the pod is not restarted any more because it has ended or is being deleted.
func leaving(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil || crr.PodEnded(pod) }
