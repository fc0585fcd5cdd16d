package podrules

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// NotDrained returns a message if unreadyGracePeriodSeconds of the request has no effect because its pod lacks the
// readiness gate, or "".
func NotDrained(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) string {
	strategy := request.Spec.Strategy
	if strategy == nil || strategy.UnreadyGracePeriodSeconds == nil || *strategy.UnreadyGracePeriodSeconds == 0 || pod == nil || HasReadinessGate(pod) {
		return ""
	}
	return "unreadyGracePeriodSeconds has no effect: pod " + pod.Name + " has no readiness gate " + v1beta1.ReadinessGateKruisePodReady +
		", so it stays in its Services until its containers are stopped"
}
