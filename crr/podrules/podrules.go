// Package podrules has rules about the pod of a request, for all who decide about requests: admission, the node and the
// manager. Decisions about one request must stay out.
package podrules

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/kubelet"
)

// defaultGrace is of a pod that says nothing: the API's default.
const defaultGrace = 30 * time.Second

// exitCodeKilled and exitCodeTerminated are those of a program that a signal ended: 128 and the signal's number.
const (
	exitCodeKilled     = 128 + 9
	exitCodeTerminated = 128 + 15
)

// SidecarTerminated reports whether the pod's work is done and only its sidecars are left to be stopped, as
// OpenKruise's SidecarTerminator does through requests of this kind; being started again is not their purpose.
func SidecarTerminated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1beta1.ConditionSidecarTerminated
	})
}

// HasReadinessGate reports whether the pod can be made not ready through the readiness gate KruisePodReady.
func HasReadinessGate(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
		return gate.ConditionType == v1beta1.ReadinessGateKruisePodReady
	})
}

// Grace is the time between TERM and KILL that the request gives a container of the pod, preStop included.
func Grace(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) time.Duration {
	if strategy := request.Spec.Strategy; strategy != nil && strategy.TerminationGracePeriodSeconds != nil {
		return time.Duration(*strategy.TerminationGracePeriodSeconds) * time.Second
	}
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return defaultGrace
}

// minRest is the least that a stop leaves a container whose grace period has passed: with nothing a container runtime kills at
// once, also a container that its stop signal has not reached, as the process that was to stop it may have died before.
const minRest = time.Second

// Rest is what a stop that began at a time, or begins now (nil), has left of its grace period, and the preStop hook if there
// is time for it.
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

// EndsForGood says why a stop could end the container instead of restarting it; empty: it cannot. What a program makes of
// TERM is not known beforehand: it may exit well, be ended by the signal, or be killed later.
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

// OverridesRestartPolicy reports whether the request asks for a restart even where the restart policy forbids it.
func OverridesRestartPolicy(request *v1beta1.ContainerRecreateRequest) bool {
	return request.Annotations[v1beta1.AnnotationRestartPolicy] == v1beta1.RestartPolicyOverride
}

// PreStop is the hook of a container or native sidecar of the pod; nil if it has none.
func PreStop(pod *corev1.Pod, container string) *corev1.LifecycleHandler {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name == container && c.Lifecycle != nil {
			return c.Lifecycle.PreStop
		}
	}
	return nil
}

// NeedsOther reports whether the container's stop for this request ends its pod unless another container runs meanwhile. The
// request overrides a restart policy that may not start the container again; kubelet starts it after its removal, but a pod
// in which nothing runs and whose containers have all been up ends before (kubelet, getPhase).
func NeedsOther(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod, container string) bool {
	return OverridesRestartPolicy(request) && !SidecarTerminated(pod) &&
		EndsForGood(kubelet.RestartPolicyOf(pod, container), Grace(request, pod)) != ""
}

// Others are the containers that kubelet reports as running, other than this one. Init containers, and so native sidecars, are
// left out: no pod goes on for them.
func Others(pod *corev1.Pod, container string) []corev1.ContainerStatus {
	var running []corev1.ContainerStatus
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != container && status.State.Running != nil {
			running = append(running, status)
		}
	}
	return running
}

// EndsPod says that the stop of the container would end the pod.
func EndsPod(pod *corev1.Pod, container string) string {
	return fmt.Sprintf("its restartPolicy is %s and no other container of the pod is running, so stopping it would end the pod, also with annotation %s: %s",
		kubelet.RestartPolicyOf(pod, container).Policy, v1beta1.AnnotationRestartPolicy, v1beta1.RestartPolicyOverride)
}
