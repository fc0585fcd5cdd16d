package crr

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kubelet"
)

const (
	// progressDelay holds back a status that only shows progress, as "stopped, waiting for kubelet": containers
	// run again within it, also where dozens are restarted at once, and the write is saved.
	progressDelay = 10 * time.Second
	// nextProgressDelay does so once there has been a word of it.
	nextProgressDelay = 30 * time.Second
	// heldDelay is for waits to which kubelet has given a name, as CrashLoopBackOff: they last.
	heldDelay = 2 * time.Second
	// reasonContainerCreating is kubelet's name for the ordinary way up.
	reasonContainerCreating = "ContainerCreating"
)

// minorUntil reports whether the new status differs from the stored one only in what a user can do without for
// a moment, and until when.
func (p *planner) minorUntil() (time.Time, bool) {
	stored := p.request.Status
	if stored.Phase != p.status.Phase || stored.Message != p.status.Message && !p.held || len(stored.ContainerRecreateStates) != len(p.status.ContainerRecreateStates) ||
		equality.Semantic.DeepEqual(stored, p.status) {
		return time.Time{}, false
	}
	var until time.Time
	for i, state := range p.status.ContainerRecreateStates {
		was, act := stored.ContainerRecreateStates[i], p.observed.Acts[state.Name]
		begun := was.Phase == v1beta1.ContainerRecreateRequestPending && state.Phase == v1beta1.ContainerRecreateRequestRecreating
		if state.Phase != was.Phase && !begun || act.Err != "" {
			return time.Time{}, false
		}
		if equality.Semantic.DeepEqual(state, was) {
			continue
		}
		since := act.Done
		if act.Running { // it has ended already, and so will the act at any moment
			since = p.now
		}
		until = Earlier(until, since.Add(p.progressDelay(was)))
	}
	return until, p.now.Before(until)
}

// progressDelay is how long after the last act on a container a word on its progress may come.
func (p *planner) progressDelay(was v1beta1.ContainerRecreateRequestRecreateState) time.Duration {
	status := kubelet.StatusOf(p.observed.Pod, was.Name)
	if status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "" && status.State.Waiting.Reason != reasonContainerCreating {
		return heldDelay
	}
	// Kubelet 1.36 names a back-off when it looks at the pod again, which may be at the end of it.
	if newest, known := p.observed.newest(was.Name); known && newest.State == identity.StateExited && delaysRestart(newest, newest.FinishedAt) {
		return heldDelay
	}
	if was.IsKilled {
		return nextProgressDelay
	}
	return progressDelay
}
