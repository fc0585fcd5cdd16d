package cache

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/kubelet"
)

// Daemons are the namespaces in which the pods of daemons run. A pod in another namespace is not a daemon, whatever its
// labels and owners are, because anyone who may create pods there sets them.
type Daemons struct {
	Refit  string // of refit-daemon
	Kruise string // of kruise-daemon
}

// Has reports whether a pod belongs to refit-daemon or kruise-daemon.
func (d Daemons) Has(pod *corev1.Pod) bool { return d.HasRefit(pod) || d.HasKruise(pod) }

// HasRefit reports whether a pod belongs to refit-daemon, by the label of its DaemonSet.
func (d Daemons) HasRefit(pod *corev1.Pod) bool {
	return pod.Namespace == d.Refit && pod.Labels["app.kubernetes.io/name"] == "refit-daemon"
}

// HasKruise reports whether a pod belongs to kruise-daemon, by label and name of its DaemonSet. Other daemons could have
// the same label.
func (d Daemons) HasKruise(pod *corev1.Pod) bool {
	return pod.Namespace == d.Kruise && pod.Labels["control-plane"] == "daemon" && strings.HasPrefix(pod.Name, "kruise-daemon")
}

// IsReady reports whether a pod is not being deleted and its condition Ready is True.
func IsReady(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && kubelet.Ready(pod) }
