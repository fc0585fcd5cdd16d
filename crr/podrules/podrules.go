// Package podrules has rules about the pod of a request that admission, the node and the manager share. Decisions about
// one request must stay out.
package podrules

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
)

// exitCodeKilled and exitCodeTerminated are the exit codes of programs ended by SIGKILL and SIGTERM: 128 and the
// signal's number.
const (
	exitCodeKilled     = 128 + 9
	exitCodeTerminated = 128 + 15
)

// SidecarTerminated reports whether the pod's work is done and only its sidecars have to be stopped. OpenKruise's
// SidecarTerminator creates such requests; the sidecars need not start again.
func SidecarTerminated(pod *corev1.Pod) bool {
	return kubelet.ConditionTrue(pod, v1beta1.ConditionSidecarTerminated)
}

// HasReadinessGate reports whether the pod can be made not ready through the readiness gate KruisePodReady.
func HasReadinessGate(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
		return gate.ConditionType == v1beta1.ReadinessGateKruisePodReady
	})
}

// Grace returns the time between SIGTERM and SIGKILL that the request gives containers of the pod, including the
// preStop hook.
func Grace(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) time.Duration {
	if strategy := request.Spec.Strategy; strategy != nil && strategy.TerminationGracePeriodSeconds != nil {
		return kubelet.GracePeriod(strategy.TerminationGracePeriodSeconds)
	}
	return kubelet.GracePeriod(pod.Spec.TerminationGracePeriodSeconds)
}

// minRest is the minimum grace period of a stop whose grace period has passed. With 0 a container runtime would kill
// the container at once, even if it has never got the stop signal because the process that stopped it died before.
const minRest = time.Second

// Rest returns the remaining grace period of a stop that began at a time, or begins now if began is nil. It also
// returns the preStop hook if there is time to run it.
func Rest(grace time.Duration, hook *corev1.LifecycleHandler, began *metav1.MicroTime, now time.Time) (time.Duration, *corev1.LifecycleHandler) {
	rest := grace
	if began != nil {
		rest -= min(max(now.Sub(began.Time), 0), grace)
	}
	switch {
	case grace == 0:
		return 0, nil
	case rest == 0 && hook != nil:
		return kubelet.MinGracePeriod, nil
	default:
		return max(rest, min(minRest, grace)), hook
	}
}

// EndsForGood returns why a stop could end the container for good instead of restarting it, or "" if it cannot. How a
// program reacts to SIGTERM is not known in advance: it may exit with 0, be ended by the signal, or be killed later.
func EndsForGood(policy kubelet.RestartPolicy, grace time.Duration) string {
	codes := []int32{exitCodeKilled}
	if grace > 0 {
		codes = []int32{0, exitCodeTerminated, exitCodeKilled}
	}
	for _, code := range codes {
		if policy.Restarts(code) {
			continue
		}
		why := fmt.Sprintf("restartPolicy %s would not start it again after exit code %d", policy.Policy, code)
		if code != exitCodeKilled && policy.Restarts(exitCodeKilled) {
			why += fmt.Sprintf("; with terminationGracePeriodSeconds 0 it is killed, exits with code %d, and is started", exitCodeKilled)
		}
		return why
	}
	return ""
}

// OverridesRestartPolicy reports whether the request demands a restart even if the restart policy does not allow it.
func OverridesRestartPolicy(request *v1beta1.ContainerRecreateRequest) bool {
	return request.Annotations[v1beta1.AnnotationRestartPolicy] == v1beta1.RestartPolicyOverride
}

// PreStop returns the hook of a container or native sidecar of the pod, or nil if it has none or there is no time to run it.
func PreStop(pod *corev1.Pod, container string, grace time.Duration) *corev1.LifecycleHandler {
	if grace == 0 {
		return nil
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name == container && c.Lifecycle != nil {
			return c.Lifecycle.PreStop
		}
	}
	return nil
}

// NeedsOther reports whether stopping the container for this request ends the pod unless another container runs
// meanwhile. The request overrides a restart policy that may not restart the container; kubelet starts it after its
// removal. But before that, kubelet ends a pod in which no container runs and all containers have been started
// (getPhase in kubelet).
func NeedsOther(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod, container string) bool {
	return OverridesRestartPolicy(request) && !SidecarTerminated(pod) &&
		EndsForGood(kubelet.RestartPolicyOf(pod, container), Grace(request, pod)) != ""
}

// Others returns the other containers that kubelet reports as running. It leaves out init containers and native
// sidecars, because they do not keep a pod running.
func Others(pod *corev1.Pod, container string) []corev1.ContainerStatus {
	var running []corev1.ContainerStatus
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != container && status.State.Running != nil {
			running = append(running, status)
		}
	}
	return running
}

// EndsPod returns a message that says that stopping the container would end the pod.
func EndsPod(pod *corev1.Pod, container string) string {
	return fmt.Sprintf("its restartPolicy is %s and no other container of the pod is running, so stopping it would end the pod, also with annotation %s: %s",
		kubelet.RestartPolicyOf(pod, container).Policy, v1beta1.AnnotationRestartPolicy, v1beta1.RestartPolicyOverride)
}
