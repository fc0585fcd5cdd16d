package rollout

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/kubelet"
)

// Leaving is a pod that is being deleted because somebody has evicted it.
type Leaving struct {
	UID      types.UID
	Workload string
	// At is when it was evicted. Gone is until when to wait for its end: when it is killed, but at most LongestEnd.
	At, Gone time.Time
	// Injected says that the pod has the sidecars. Counted says that the eviction has been counted.
	Injected, Counted bool
}

// LeavingOf returns nil unless the pod was evicted and a controller will replace it. In particular it returns nil for a
// pod that is deleted because its workload is scaled down.
func LeavingOf(pod *corev1.Pod, injected bool) *Leaving {
	evicted, owner := kubelet.Condition(&pod.Status, corev1.DisruptionTarget), metav1.GetControllerOfNoCopy(pod)
	if pod.DeletionTimestamp == nil || evicted == nil || evicted.Status != corev1.ConditionTrue || owner == nil {
		return nil
	}
	at := evicted.LastTransitionTime.Time
	return &Leaving{
		UID: pod.UID, Workload: string(owner.UID), At: at, Gone: earlier(pod.DeletionTimestamp.Time, at.Add(LongestEnd)), Injected: injected,
	}
}

// Ending is a pod that is being deleted for another reason than an eviction.
type Ending struct {
	UID      types.UID
	Workload string
	// Until limits how long the pod counts: its workload may have been scaled down, and its end may be delayed. It is
	// zero for a pod that has already ended and served nobody.
	Until time.Time
}

// EndingOf returns nil for a pod that is not being deleted, or that no controller would replace.
func EndingOf(pod *corev1.Pod) *Ending {
	owner := metav1.GetControllerOfNoCopy(pod)
	if pod.DeletionTimestamp == nil || owner == nil {
		return nil
	}
	ending := &Ending{UID: pod.UID, Workload: string(owner.UID)}
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		began := pod.DeletionTimestamp.Time
		if seconds := pod.DeletionGracePeriodSeconds; seconds != nil { // may be more than a time.Duration can hold
			began = time.Unix(began.Unix()-*seconds, 0)
		}
		ending.Until = earlier(pod.DeletionTimestamp.Time, began.Add(LongestEnd)).Add(replaceLimit)
	}
	return ending
}

// EvictedByOther records an eviction by somebody else, for example the previous leader. The pod is no longer in the
// fleet. The size of its workload is derived from the creation times of the other pods.
func (f *Fleet) EvictedByOther(key types.NamespacedName, pod *Leaving) {
	_, missing, _ := f.missing(pod.At)
	had := f.Before(pod.Workload, pod.At) + missing[pod.Workload] + 1
	f.evicted[key] = eviction{uid: pod.UID, workload: pod.Workload, pods: had, before: f.before(pod.Workload, pod.At), until: pod.Gone.Add(replaceLimit)}
}

// Before returns the number of pods of a workload that were created before a time.
func (f *Fleet) Before(workload string, at time.Time) int {
	n := 0
	for _, pod := range f.pods {
		if pod.Workload == workload && pod.Created.Before(at) {
			n++
		}
	}
	return n
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
