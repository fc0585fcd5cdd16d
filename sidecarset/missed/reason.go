package missed

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/inject"
)

// Reason is why a pod was not injected.
type Reason string

// The reasons. Pods are evicted for the first two only: the others would not be injected if they were created again, or
// would override a decision of a user.
const (
	// NotReached: the pod is younger than the SidecarSet. refit-manager could not be reached, or did not know the SidecarSet.
	NotReached Reason = "refit-manager could not be reached when the pod was created"
	// Older: the pod was created before the SidecarSet, or before it had the labels that the SidecarSet selects.
	Older Reason = "the pod is older than the SidecarSet"
	// Excluded: the webhook is not called for pods of the namespace.
	Excluded Reason = "injection is disabled for the namespace"
	// Mirror: the pod is one of kubelet's own.
	Mirror Reason = "the pod is a static one"
	// Skipped: the pod's annotation says why.
	Skipped Reason = "skipped"
	// Detached: it has the containers, and its annotations do not say so.
	Detached Reason = "the pod has the sidecars, and its annotations have been changed"
)

// Pod that was not injected.
type Pod struct {
	Reason Reason
	// Message says more than the reason.
	Message string
	// Workload identifies the controller of the pod; empty if nothing would create the pod again.
	Workload string
	UID      types.UID
	Created  metav1.Time
	Ready    bool
	// UnderWay says that somebody has begun a restart or an update of it, Stuck that it is not ready and cannot become so by itself.
	UnderWay, Stuck bool
}

// Judge says why a pod was not injected. Seen is the pod as budgets see it. Disabled says that the webhook is not called for its namespace.
func Judge(pod *corev1.Pod, set *v1beta1.SidecarSet, seen *budget.Pod, disabled bool) Pod {
	p := Pod{UID: pod.UID, Created: pod.CreationTimestamp, Ready: seen.Ready, UnderWay: seen.UnderWay, Stuck: seen.Stuck}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		p.Workload = string(owner.UID)
	}
	var skipped map[string]string
	_ = foreign.JSON(pod.Annotations[v1beta1.AnnotationSidecarSetSkipped], &skipped) // without an entry it does not count
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

// doubtful is for how long a pod that has missed its injection tells that the next one would miss it too.
const doubtful = time.Hour

// DoubtfulUntil is until when pods should not be evicted for the sidecars that new ones get: one that was created lately has got
// none. Zero if all did.
func DoubtfulUntil(pods map[types.NamespacedName]Pod, now time.Time) time.Time {
	var until time.Time
	for _, pod := range pods {
		if at := pod.Created.Add(doubtful); pod.Reason == NotReached && now.Before(at) && at.After(until) {
			until = at
		}
	}
	return until
}

// detached reports whether the pod has an injected container of the SidecarSet, which its annotations do not name.
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

// repairable reports whether another pod in its place would be injected.
func (p *Pod) repairable() bool {
	return p.Workload != "" && (p.Reason == NotReached || p.Reason == Older)
}

// evictable reports whether the pod may be evicted in a workload that is like this: a pod that is not ready may be so only for a
// moment, and one that somebody restarts is left to them.
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

// Repairable counts the pods that are to be evicted.
func Repairable(pods map[types.NamespacedName]Pod) (n int) {
	for _, pod := range pods {
		if pod.repairable() {
			n++
		}
	}
	return n
}
