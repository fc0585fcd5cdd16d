package crr

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/recheck"
)

const (
	// progressDelay delays a status that only shows progress, for example "stopped, waiting for kubelet". Containers
	// usually run again before it ends, even if dozens are restarted at once, and the write is saved.
	progressDelay = 10 * time.Second
	// nextProgressDelay is the delay after the first such status.
	nextProgressDelay = 30 * time.Second
	// heldDelay is the delay if kubelet gives a reason for the wait, for example CrashLoopBackOff: such waits last longer.
	heldDelay = 2 * time.Second
	// reasonContainerCreating is kubelet's reason during a normal start.
	reasonContainerCreating = "ContainerCreating"
)

// minorUntil reports whether the new status differs from the stored one only in details that users do not need at once,
// and until when the write can wait.
func (p *planner) minorUntil() (time.Time, bool) {
	stored := p.request.Status
	if stored.Phase != p.status.Phase || stored.Message != p.status.Message && !p.held || len(stored.ContainerRecreateStates) != len(p.status.ContainerRecreateStates) ||
		equality.Semantic.DeepEqual(stored, p.status) {
		return time.Time{}, false
	}
	var until recheck.At
	for i, state := range p.status.ContainerRecreateStates {
		was, action := stored.ContainerRecreateStates[i], p.observed.Actions[state.Name]
		begun := was.Phase == v1beta1.ContainerRecreateRequestPending && state.Phase == v1beta1.ContainerRecreateRequestRecreating
		if state.Phase != was.Phase && !begun || action.Err != "" {
			return time.Time{}, false
		}
		if equality.Semantic.DeepEqual(state, was) {
			continue
		}
		since := action.Done
		if action.Running { // the instance has ended, and the action will end in a moment
			since = p.now
		}
		until = until.Or(since.Add(p.progressDelay(was)))
	}
	return until.Time, p.now.Before(until.Time)
}

// progressDelay returns how long after the last action on a container its progress may be written.
func (p *planner) progressDelay(was v1beta1.ContainerRecreateRequestRecreateState) time.Duration {
	status := kubelet.StatusOf(p.observed.Pod, was.Name)
	if status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "" && status.State.Waiting.Reason != reasonContainerCreating {
		return heldDelay
	}
	// Kubelet 1.36 reports a back-off only when it syncs the pod again, which may be when the back-off ends.
	if newest, known := p.observed.newest(was.Name); known && newest.State == identity.StateExited && delaysRestart(newest, newest.FinishedAt) {
		return heldDelay
	}
	if was.IsKilled {
		return nextProgressDelay
	}
	return progressDelay
}
