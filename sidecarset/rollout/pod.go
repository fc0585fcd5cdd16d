package rollout

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// State is the state of a pod compared with the newest spec of the SidecarSet.
type State string

// The states.
const (
	// Updated means that the sidecars match the spec.
	Updated State = "Updated"
	// Outdated means that the sidecars have to be updated in place.
	Outdated State = "Outdated"
	// NotUpgradable means that the sidecars differ from the spec in fields that cannot be changed in place.
	NotUpgradable State = "NotUpgradable"
	// Aborted means that a hot upgrade to this spec has been aborted; another spec is needed.
	Aborted State = "Aborted"
)

// Pod is what is known about a pod that has the sidecars.
type Pod struct {
	Key types.NamespacedName
	UID types.UID
	// Workload identifies the controller that owns the pod; empty if it has none.
	Workload string
	Labels   map[string]string
	State    State
	// InFlight says that an update by this SidecarSet has begun and has not taken effect.
	InFlight bool
	// UnderWay says that a restart, an update or an eviction by others, including other SidecarSets, is in progress.
	UnderWay bool
	// Stuck says that the pod is not ready and cannot become ready by itself.
	Stuck bool
	// BrokenBefore says that the pod has not been ready since before its update began, and cannot become ready by
	// itself: the update is not the cause.
	BrokenBefore bool
	// Ours says that this process has updated the pod. Nobody can forge it; another replica does not know it.
	Ours bool
	// Original says that this SidecarSet has never begun an update of the pod: it has the sidecars with which it was
	// created.
	Original bool
	// Stops says that the update stops a container, so that PodDisruptionBudgets apply.
	Stops bool
	// Unjudged says that the pod could not be evaluated: because of a panic, in which case its workload has one pod less, or because it
	// is too large. It is neither updated nor evicted.
	Unjudged bool
	// Failed says that an update has begun and something prevents the container from running, for example a faulty image.
	Failed bool
	Ready  bool
	// ReadySince is when the pod last became ready; zero if it is not ready.
	ReadySince time.Time
	// RetryAt is when the next attempt may follow a failed write to this pod; zero if none has failed.
	RetryAt time.Time

	Created   time.Time
	Scheduled bool
	Phase     corev1.PodPhase
	Restarts  int32 // of all containers
}

// Equal reports whether two pods are equal in everything that the rollout depends on.
func (p *Pod) Equal(q *Pod) bool {
	return p.UID == q.UID && p.State == q.State && p.InFlight == q.InFlight && p.Failed == q.Failed && p.Ready == q.Ready &&
		p.UnderWay == q.UnderWay && p.Stuck == q.Stuck && p.BrokenBefore == q.BrokenBefore && p.Unjudged == q.Unjudged && p.Original == q.Original &&
		p.Stops == q.Stops && p.ReadySince.Equal(q.ReadySince) && p.Scheduled == q.Scheduled && p.Phase == q.Phase && labels.Equals(p.Labels, q.Labels)
}

// busy reports whether an operation is in progress, whoever has begun it.
func (p *Pod) busy() bool { return p.InFlight || p.UnderWay }

// availableAt returns when the pod has been ready for minReady, and false if it is not ready or an operation is in progress.
func (p *Pod) availableAt(minReady time.Duration) (time.Time, bool) {
	return p.ReadySince.Add(minReady), p.Ready && !p.busy()
}

// disturbed reports whether the pod counts against maxUnavailable while it is not available: an operation has begun, or
// the update is complete, or it is ready but not for long enough. It is false for pods of an older spec that are not
// ready for other reasons, for pods that have not been ready since before their update, and for pods that have the
// sidecars with which they were created.
func (p *Pod) disturbed() bool {
	if p.BrokenBefore {
		return p.UnderWay
	}
	if p.State == Updated && p.Original {
		return p.busy()
	}
	return p.busy() || p.State == Updated || p.State == Aborted || p.Ready
}
