package cache

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/kubelet"
)

// Daemons are the namespaces in which the pods of daemons run. A pod elsewhere is none, whatever its labels and owners say: whoever
// may create pods in some namespace sets them.
type Daemons struct {
	Refit  string // of refit-daemon
	Kruise string // of kruise-daemon
}

// Has reports whether a pod is one of refit-daemon or kruise-daemon.
func (d Daemons) Has(pod *corev1.Pod) bool { return d.HasRefit(pod) || d.HasKruise(pod) }

// HasRefit reports whether a pod is one of refit-daemon, by the label of its DaemonSet.
func (d Daemons) HasRefit(pod *corev1.Pod) bool {
	return pod.Namespace == d.Refit && pod.Labels["app.kubernetes.io/name"] == "refit-daemon"
}

// HasKruise reports whether a pod is one of kruise-daemon, by label and name of its DaemonSet. The label alone would also
// fit daemons of others.
func (d Daemons) HasKruise(pod *corev1.Pod) bool {
	return pod.Namespace == d.Kruise && pod.Labels["control-plane"] == "daemon" && strings.HasPrefix(pod.Name, "kruise-daemon")
}

// IsReady reports whether a pod is not being deleted and its condition Ready is True.
func IsReady(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && kubelet.Ready(pod) }
