package cache

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/kubelet"
)

// IsDaemon reports whether a pod is one of refit-daemon or kruise-daemon.
func IsDaemon(pod *corev1.Pod) bool { return IsRefitDaemon(pod) || IsKruiseDaemon(pod) }

// IsRefitDaemon reports whether a pod is one of refit-daemon, by the label of its DaemonSet.
func IsRefitDaemon(pod *corev1.Pod) bool {
	return pod.Labels["app.kubernetes.io/name"] == "refit-daemon"
}

// IsKruiseDaemon reports whether a pod is one of kruise-daemon, by label and name of its DaemonSet. The label alone would also
// fit daemons of others.
func IsKruiseDaemon(pod *corev1.Pod) bool {
	return pod.Labels["control-plane"] == "daemon" && strings.HasPrefix(pod.Name, "kruise-daemon")
}

// IsReady reports whether a pod is not being deleted and its condition Ready is True.
func IsReady(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && kubelet.Ready(pod) }
