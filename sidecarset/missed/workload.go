package missed

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// Workloads returns a function that counts the pods of a workload: the ones that were not injected, and the injected
// ones in the fleet. others are pods on which other controllers have recently begun an operation that the pods may not
// show yet.
func Workloads(pods Pods, fleet *rollout.Fleet, others map[types.UID]time.Time, now time.Time) func(string) Workload {
	missing, begun := notInjected(pods, others), map[string]int{}
	for uid := range others {
		if pod, ok := fleet.Find(uid); ok {
			begun[pod.Workload]++
		}
	}
	counted := map[string]Workload{}
	return func(name string) Workload {
		w, known := counted[name]
		if !known {
			injected, unavailable, underWay := fleet.Workload(name, now)
			w = missing[name]
			w.Pods, w.Ready, w.UnderWay = w.Pods+injected, w.Ready+max(0, injected-unavailable-begun[name]), w.UnderWay+underWay+begun[name]
			counted[name] = w
		}
		return w
	}
}

func notInjected(pods Pods, others map[types.UID]time.Time) map[string]Workload {
	workloads := map[string]Workload{}
	for _, pod := range pods {
		w := workloads[pod.Workload]
		w.Pods++
		switch {
		case pod.UnderWay || !others[pod.UID].IsZero():
			w.UnderWay++
		case pod.Ready:
			w.Ready++
		}
		workloads[pod.Workload] = w
	}
	return workloads
}
