package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/v1beta1"
)

// Minimum time between writes in which only counters change. During a rollout counters change with every pod, and would
// cost as many writes as the pods themselves.
const (
	pacePerPod   = 100 * time.Millisecond
	shortestPace = 500 * time.Millisecond
	longestPace  = 15 * time.Second
)

// Due returns when a changed status has to be written, given when the last one was written: at once if the status or
// reason of a condition has changed, and otherwise later the more pods there are.
func Due(old, next *v1beta1.SidecarSetStatus, written time.Time) time.Time {
	if urgent(old, next) {
		return written
	}
	return written.Add(min(max(pacePerPod*time.Duration(next.MatchedPods), shortestPace), longestPace))
}

func urgent(old, next *v1beta1.SidecarSetStatus) bool {
	if old.ObservedGeneration != next.ObservedGeneration || old.LatestRevision != next.LatestRevision || old.PausedRevision != next.PausedRevision {
		return true
	}
	for i := range next.Conditions {
		c := &next.Conditions[i]
		if was := meta.FindStatusCondition(old.Conditions, c.Type); was == nil || was.Status != c.Status || was.Reason != c.Reason {
			return true
		}
	}
	return (old.CollisionCount == nil) != (next.CollisionCount == nil) ||
		old.CollisionCount != nil && *old.CollisionCount != *next.CollisionCount
}
