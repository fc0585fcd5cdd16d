package upgrade

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// Verdict is what a pod is, compared with the target.
type Verdict struct {
	State rollout.State
	// InFlight says that an update has been begun and has not taken effect, Failed that something is in its way.
	InFlight, Failed bool
	// BrokenBefore says that the pod has not been ready since before the update, and cannot become ready by itself.
	BrokenBefore bool
	// Original says that no update was ever begun: the pod was created with the sidecars that it has.
	Original bool
	// Stops says that the update, or what is left of it, stops a container.
	Stops bool
	// Continue says that Continue has something to write.
	Continue bool
	// Unreadable says that the pod is not upgradable since something of it is not readable.
	Unreadable bool
	// Message says what is waited for, or why the pod cannot be updated.
	Message string
	// Again is when to judge again although nothing has changed; zero for never.
	Again time.Time
}

// maxMessage bounds the message about a pod that is not readable, in bytes.
const maxMessage = 512

// readable says what of the pod is not, of that which an update depends on.
func (t *Target) readable(pod *corev1.Pod) error {
	_, err := record.ReadSidecars(pod, t.SidecarSet)
	return errors.Join(foreign.Pod(pod), err)
}

// Pod is what the fleet keeps of a pod. Beside is what budgets see of it apart from the update by this SidecarSet. RetryAt is when the
// next write to it may be tried; zero if none has failed.
func (v *Verdict) Pod(pod *corev1.Pod, beside *budget.Pod, retryAt time.Time) rollout.Pod {
	p := rollout.Pod{
		Key: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID, Labels: pod.Labels, RetryAt: retryAt,
		State: v.State, InFlight: v.InFlight, Failed: v.Failed, BrokenBefore: v.BrokenBefore, Original: v.Original, Stops: v.Stops, UnderWay: beside.UnderWay, Stuck: beside.Stuck, Ready: beside.Ready,
		Created:   pod.CreationTimestamp.Time,
		Scheduled: pod.Spec.NodeName != "", Running: pod.Status.Phase == corev1.PodRunning,
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		p.Workload = string(owner.UID)
	}
	for i := range pod.Status.ContainerStatuses {
		p.Restarts += pod.Status.ContainerStatuses[i].RestartCount
	}
	if p.Ready {
		p.ReadySince = kubelet.Condition(&pod.Status, corev1.PodReady).LastTransitionTime.Time
	}
	return p
}

// String is what the verdict says, for logs.
func (v *Verdict) String() string {
	text := string(v.State)
	if v.InFlight {
		text += ", in flight"
	}
	if v.Failed {
		text += ", failed"
	}
	if v.Message != "" {
		text = fmt.Sprintf("%s: %s", text, v.Message)
	}
	return text
}
