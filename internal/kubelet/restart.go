package kubelet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// RestartPolicy is how kubelet handles an exit of one container: by its own policy (KEP-753, native sidecars) and rules
// (KEP-5307), else by the policy of its pod.
type RestartPolicy struct {
	Policy corev1.ContainerRestartPolicy
	Rules  []corev1.ContainerRestartRule
}

// RestartPolicyOf returns the policy of the container or init container with this name. For an unknown name it returns the
// pod's policy.
func RestartPolicyOf(pod *corev1.Pod, container string) RestartPolicy {
	of := RestartPolicy{Policy: corev1.ContainerRestartPolicy(pod.Spec.RestartPolicy)}
	if of.Policy == "" {
		of.Policy = corev1.ContainerRestartPolicyAlways // the API's default
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name != container {
			continue
		}
		if c.RestartPolicy != nil {
			of.Policy = *c.RestartPolicy
		}
		of.Rules = c.RestartPolicyRules
		break
	}
	return of
}

// Always reports whether every exit is followed by a restart.
func (p RestartPolicy) Always() bool { return p.Policy == corev1.ContainerRestartPolicyAlways }

// Restarts reports whether kubelet restarts the container after an exit with this code. The first rule that matches decides
// before the policy does (kubelet, podutil.ContainerShouldRestart); both of its actions restart the container.
func (p RestartPolicy) Restarts(exitCode int32) bool {
	if slices.ContainsFunc(p.Rules, func(rule corev1.ContainerRestartRule) bool { return matches(rule, exitCode) }) {
		return true
	}
	switch p.Policy {
	case corev1.ContainerRestartPolicyNever:
		return false
	case corev1.ContainerRestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}

// Restartable reports whether kubelet restarts the container after at least some exits.
func (p RestartPolicy) Restartable() bool {
	return p.Policy != corev1.ContainerRestartPolicyNever || len(p.Rules) > 0
}

// Final reports whether kubelet has reported an end of the container that it never changes again: if the policy does not
// restart the container, kubelet refuses any other state from then on (status manager, checkContainerStateTransition).
func (p RestartPolicy) Final(status *corev1.ContainerStatus) bool {
	return status != nil && status.State.Terminated != nil && !p.Restarts(status.State.Terminated.ExitCode)
}

func matches(rule corev1.ContainerRestartRule, exitCode int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, exitCode)
	switch rule.ExitCodes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	default:
		return false
	}
}
