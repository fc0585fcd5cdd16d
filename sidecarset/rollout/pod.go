package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// State is what a pod is, compared with the newest spec of the SidecarSet.
type State string

// The states.
const (
	// Updated: the sidecars are those of the spec.
	Updated State = "Updated"
	// Outdated: the sidecars are to be updated in place.
	Outdated State = "Outdated"
	// NotUpgradable: the sidecars differ from the spec in what cannot be changed in place.
	NotUpgradable State = "NotUpgradable"
	// Aborted: a hot upgrade to this very spec has been given up; another spec is needed.
	Aborted State = "Aborted"
)

// Pod is what is known of a pod that has the sidecars.
type Pod struct {
	Key types.NamespacedName
	UID types.UID
	// Workload identifies the controller that owns the pod; empty for a pod without one.
	Workload string
	Labels   map[string]string
	State    State
	// InFlight says that an update by this SidecarSet has been begun and has not taken effect.
	InFlight bool
	// UnderWay says the same of a restart, an update or an eviction by others, another SidecarSet included.
	UnderWay bool
	// Stuck says that it is not ready and cannot become ready by itself.
	Stuck bool
	// BrokenBefore says that it has not been ready since before its update was begun, and cannot become ready by itself: the update is
	// not the reason.
	BrokenBefore bool
	// Original says that this SidecarSet has never begun an update of it: it was created with the sidecars that it has.
	Original bool
	// Stops says that its update stops a container, so that PodDisruptionBudgets are asked.
	Stops bool
	// Failed says that an update has been begun and something keeps the container from running, as a faulty image.
	Failed bool
	Ready  bool
	// ReadySince is when the pod became ready the last time; zero if it is not ready.
	ReadySince time.Time
	// RetryAt is when the next try may follow a failed write to this pod; zero if none has failed.
	RetryAt time.Time

	Created   time.Time
	Scheduled bool
	Running   bool
	Restarts  int32 // of all containers
}

// Equal reports whether nothing that the rollout depends on differs.
func (p *Pod) Equal(q *Pod) bool {
	return p.UID == q.UID && p.State == q.State && p.InFlight == q.InFlight && p.Failed == q.Failed && p.Ready == q.Ready &&
		p.UnderWay == q.UnderWay && p.Stuck == q.Stuck && p.BrokenBefore == q.BrokenBefore && p.Original == q.Original &&
		p.Stops == q.Stops && p.ReadySince.Equal(q.ReadySince) && p.Scheduled == q.Scheduled && p.Running == q.Running && labels.Equals(p.Labels, q.Labels)
}

// busy reports whether something is under way, whoever has begun it.
func (p *Pod) busy() bool { return p.InFlight || p.UnderWay }

// availableAt is when the pod has been ready for as long as is asked for; false if it is not ready or something is under way.
func (p *Pod) availableAt(minReady time.Duration) (time.Time, bool) {
	return p.ReadySince.Add(minReady), p.Ready && !p.busy()
}

// disturbed reports whether the pod, as long as it is not available, counts against maxUnavailable: something was begun, or the
// update is over, or it is ready and not for long enough. Pods of an older spec that are not ready have reasons of their own, and so
// have those that have not been ready since before their update, and those that were created with the sidecars that they have.
func (p *Pod) disturbed() bool {
	if p.BrokenBefore {
		return p.UnderWay
	}
	if p.State == Updated && p.Original {
		return p.busy()
	}
	return p.busy() || p.State == Updated || p.State == Aborted || p.Ready
}
