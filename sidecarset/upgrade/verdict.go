package upgrade

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// Verdict is the state of a pod compared with the target.
type Verdict struct {
	State rollout.State
	// InFlight says that an update has begun and has not taken effect. Failed says that something prevents it.
	InFlight, Failed bool
	// BrokenBefore says that the pod has not been ready since before the update, and cannot become ready by itself.
	BrokenBefore bool
	// Original says that no update was ever begun: the pod has the sidecars with which it was created.
	Original bool
	// InPlace says that this SidecarSet has updated the pod in place, as far as recorded.
	InPlace bool
	// Stops says that the update, or the rest of it, stops a container.
	Stops bool
	// Continue says that Target.Step has something to write although it begins nothing.
	Continue bool
	// Unreadable says that the pod is not upgradable because part of it is unreadable.
	Unreadable bool
	// Message says what the update waits for, or why the pod cannot be updated.
	Message string
	// Again is when to judge again.
	Again recheck.At
}

// maxMessage limits the message about an unreadable pod, in bytes.
const maxMessage = 512

// Active reports whether a pod may be updated: it has not ended, is not being deleted, and its sidecars are not about
// to be stopped because its main containers have ended, as in pods of Jobs, some of them by another image.
func Active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed &&
		!kubelet.ConditionTrue(pod, v1beta1.ConditionSidecarTerminated)
}

// Pod returns the pod for the fleet. beside is how budgets see the pod apart from the update by this SidecarSet.
// retryAt is when the next write to it may be tried; zero if none has failed.
func (v *Verdict) Pod(pod *corev1.Pod, beside *budget.Pod, retryAt time.Time) rollout.Pod {
	p := rollout.Pod{
		Key: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID, Labels: pod.Labels, RetryAt: retryAt,
		State: v.State, InFlight: v.InFlight, Failed: v.Failed, BrokenBefore: v.BrokenBefore, Original: v.Original, Stops: v.Stops, UnderWay: beside.UnderWay, Stuck: beside.Stuck, Ready: beside.Ready,
		Created:   pod.CreationTimestamp.Time,
		Scheduled: pod.Spec.NodeName != "", Phase: pod.Status.Phase,
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

// Unjudged returns the pod for the fleet if it could not be evaluated: nothing is begun on it, and it is not available.
// An update that had begun before counts until it can be evaluated again.
func Unjudged(pod *corev1.Pod, before *rollout.Pod) rollout.Pod {
	v := Verdict{State: rollout.NotUpgradable, Stops: true, InFlight: before.InFlight && before.UID == pod.UID}
	p := v.Pod(pod, &budget.Pod{}, time.Time{})
	p.Unjudged = true
	return p
}

// String describes the verdict, for logs.
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
