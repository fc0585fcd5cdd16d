package rollout

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/kubelet"
)

// Leaving is a pod that is being deleted because it was evicted, by whomever.
type Leaving struct {
	UID      types.UID
	Workload string
	// At is when it was evicted, Gone until when its end is waited for: when it is killed, and LongestEnd at most.
	At, Gone time.Time
	// Injected says that it has the sidecars, Counted that the eviction is taken into account.
	Injected, Counted bool
}

// LeavingOf is nil for a pod that is not being deleted, or for another reason as when its workload is scaled down, or that nothing
// would create again.
func LeavingOf(pod *corev1.Pod, injected bool) *Leaving {
	evicted, owner := kubelet.Condition(&pod.Status, corev1.DisruptionTarget), metav1.GetControllerOfNoCopy(pod)
	if pod.DeletionTimestamp == nil || evicted == nil || evicted.Status != corev1.ConditionTrue || owner == nil {
		return nil
	}
	at := evicted.LastTransitionTime.Time
	return &Leaving{
		UID: pod.UID, Workload: string(owner.UID), At: at, Gone: Earliest(pod.DeletionTimestamp.Time, at.Add(LongestEnd)), Injected: injected,
	}
}

// Leave notes an eviction that is not known, as of a replica that led before. The pod is none of the fleet any more; how many its
// workload had is told by when the others were created.
func (f *Fleet) Leave(key types.NamespacedName, pod *Leaving) {
	_, missing, _ := f.missing(pod.At)
	had := f.Before(pod.Workload, pod.At) + missing[pod.Workload] + 1
	f.evicted[key] = eviction{uid: pod.UID, workload: pod.Workload, pods: had, before: f.before(pod.Workload, pod.At), until: pod.Gone.Add(replaceLimit)}
}

// Before counts the pods of a workload that were created before a time.
func (f *Fleet) Before(workload string, at time.Time) int {
	n := 0
	for _, pod := range f.pods {
		if pod.Workload == workload && pod.Created.Before(at) {
			n++
		}
	}
	return n
}
