package crr

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
)

const (
	// progressDelay holds back a status that only tells of progress, as "stopped, waiting for kubelet": most
	// containers run again within it, also where a hundred are restarted at once, and the write is saved.
	progressDelay = 10 * time.Second
	// nextProgressDelay does so once there has been a word of it.
	nextProgressDelay = 30 * time.Second
	// heldDelay is for waits that kubelet itself announces, which last.
	heldDelay = 2 * time.Second
)

// minorUntil reports whether the new status differs from the stored one only in what a user can do without for
// a moment, and until when.
func (p *planner) minorUntil() (time.Time, bool) {
	stored := p.request.Status
	if stored.Phase != p.status.Phase || stored.Message != p.status.Message || len(stored.ContainerRecreateStates) != len(p.status.ContainerRecreateStates) ||
		equality.Semantic.DeepEqual(stored, p.status) {
		return time.Time{}, false
	}
	var until time.Time
	for i, state := range p.status.ContainerRecreateStates {
		was, act := stored.ContainerRecreateStates[i], p.observed.Acts[state.Name]
		if state.Phase != was.Phase || act.Err != "" {
			return time.Time{}, false
		}
		if state == was {
			continue
		}
		since := act.Done
		if act.Running { // it has ended already, and so will the act at any moment
			since = p.now
		}
		until = earlier(until, since.Add(p.progressDelay(was)))
	}
	return until, p.now.Before(until)
}

// progressDelay is how long after the last act on a container the next word on its progress may come.
func (p *planner) progressDelay(was v1beta1.ContainerRecreateRequestRecreateState) time.Duration {
	switch {
	case !backoffUntil(p.observed.containerStatus(was.Name)).IsZero():
		return heldDelay
	case was.IsKilled:
		return nextProgressDelay
	default:
		return progressDelay
	}
}
