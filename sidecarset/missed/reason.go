package missed

import (
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/inject"
)

// Reason says why a pod was not injected.
type Reason string

// The reasons. Pods are only evicted for the first two: for the others their replacements would not be injected either,
// or the eviction would override a decision of a user.
const (
	// NotReached means that the pod is younger than the SidecarSet. refit-manager could not be reached, or did not know
	// the SidecarSet.
	NotReached Reason = "refit-manager could not be reached when the pod was created"
	// Older means that the pod was created before the SidecarSet, or before it had the labels that the SidecarSet selects.
	Older Reason = "the pod is older than the SidecarSet"
	// Excluded means that the webhook is not called for pods of the namespace.
	Excluded Reason = "injection is disabled for the namespace"
	// Mirror means that the pod is a static pod of kubelet.
	Mirror Reason = "the pod is a static one"
	// Skipped means that the pod was skipped, for a reason in its annotation.
	Skipped Reason = "skipped"
	// Detached means that the pod has the containers, and its annotations do not record them.
	Detached Reason = "the pod has the sidecars, and its annotations have been changed"
)

// Pod is a pod that was not injected.
type Pod struct {
	Reason Reason
	// Message gives more details than the reason.
	Message string
	// Workload identifies the controller of the pod; empty if nothing would replace the pod.
	Workload string
	UID      types.UID
	Created  metav1.Time
	Ready    bool
	// UnderWay says that a restart or an update of the pod is in progress. Stuck says that it is not ready and cannot
	// become ready by itself.
	UnderWay, Stuck bool
}

// Pods are pods that were not injected.
type Pods = iter.Seq2[types.NamespacedName, Pod]

// Judge returns why a pod was not injected. seen is the pod as budgets see it. disabled says that the webhook is not
// called for its namespace.
func Judge(pod *corev1.Pod, set *v1beta1.SidecarSet, seen *budget.Pod, disabled bool) Pod {
	p := Pod{UID: pod.UID, Created: pod.CreationTimestamp, Ready: seen.Ready, UnderWay: seen.UnderWay, Stuck: seen.Stuck}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		p.Workload = string(owner.UID)
	}
	var skipped map[string]string
	_ = foreign.JSON(pod.Annotations[v1beta1.AnnotationSidecarSetSkipped], &skipped) // an unreadable annotation is ignored
	switch {
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		p.Reason = Mirror
	case disabled:
		p.Reason = Excluded
	case skipped[set.Name] != "":
		p.Reason, p.Message = Skipped, skipped[set.Name]
	case detached(pod, set):
		p.Reason = Detached
	case pod.CreationTimestamp.Before(&set.CreationTimestamp):
		p.Reason = Older
	default:
		p.Reason = NotReached
	}
	if p.Message == "" {
		p.Message = string(p.Reason)
	}
	return p
}

// doubtful is for how long a pod without its sidecars suggests that the next one would not get them either.
const doubtful = time.Hour

// Doubtful returns the namespaces in which pods should not be evicted, because a pod that was recently created there
// has not been injected, and until when. It does not apply to other namespaces, although the cause may be the same
// there: a user who may label pods after their creation can make them look like that, and could stop all evictions.
func Doubtful(pods Pods, now time.Time) map[string]time.Time {
	until := map[string]time.Time{}
	for key, pod := range pods {
		if at := pod.Created.Add(doubtful); pod.Reason == NotReached && now.Before(at) && at.After(until[key.Namespace]) {
			until[key.Namespace] = at
		}
	}
	return until
}

// detached reports whether the pod has an injected container of the SidecarSet that its annotations do not name.
func detached(pod *corev1.Pod, set *v1beta1.SidecarSet) bool {
	var names []string
	for i := range set.Spec.Containers {
		names = append(names, inject.ContainerNames(&set.Spec.Containers[i], false)...)
	}
	for i := range set.Spec.InitContainers {
		names = append(names, inject.ContainerNames(&set.Spec.InitContainers[i], true)...)
	}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if slices.Contains(names, list[i].Name) && v1beta1.IsInjected(&list[i]) {
				return true
			}
		}
	}
	return false
}

// repairable reports whether a replacement of the pod would be injected.
func (p *Pod) repairable() bool {
	return p.Workload != "" && (p.Reason == NotReached || p.Reason == Older)
}

// evictable reports whether the pod may be evicted, given the state of its workload. A pod that is not ready may become
// ready in a moment, and a pod that somebody restarts must not be evicted.
func (p *Pod) evictable(workload Workload) bool {
	switch {
	case !p.repairable():
		return false
	case p.Stuck:
		return true
	case p.Ready:
		return workload.Ready == workload.Pods
	default:
		return workload.UnderWay == 0
	}
}

// Repairable returns the number of pods to evict.
func Repairable(pods Pods) (n int) {
	for _, pod := range pods {
		if pod.repairable() {
			n++
		}
	}
	return n
}
