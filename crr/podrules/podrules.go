// Package podrules has rules about the pod of a request, for all who decide about requests: admission, the node and the
// manager. Decisions about one request must stay out.
package podrules

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

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
