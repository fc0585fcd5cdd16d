package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Hold is why no more pods are updated now, although some are outdated.
type Hold string

// The reasons.
const (
	// HoldPaused: by the user.
	HoldPaused Hold = "Paused"
	// HoldFailures: so many pods have failed that the rollout pauses by itself.
	HoldFailures Hold = "PausedByFailures"
	// HoldPartition: as many pods are old as are to be kept so.
	HoldPartition Hold = "Partition"
	// HoldSelector: the selector of the update matches none of the others.
	HoldSelector Hold = "Selector"
	// HoldUnavailable: as many pods are unavailable as may be.
	HoldUnavailable Hold = "MaxUnavailable"
	// HoldWorkload: of the workloads of the others as many pods are unavailable as may be.
	HoldWorkload Hold = "WorkloadMaxUnavailable"
	// HoldDisruption: a PodDisruptionBudget does not allow that the others are updated.
	HoldDisruption Hold = "PodDisruptionBudget"
	// HoldRetry: a write to the others has failed and is tried again.
	HoldRetry Hold = "Retry"
)

// Selection is what is to be done next.
type Selection struct {
	// Pods are to be updated now, in this order.
	Pods []types.NamespacedName
	// Held is why not more are; empty if none is left.
	Held Hold
	// Disruption is a PodDisruptionBudget that does not allow another one, as namespace/name; empty if none is in the way.
	Disruption string
	// Again is when to look although nothing has changed; zero for never.
	Again time.Time
}

// Select chooses the pods that are to be updated now. Never more than the strategy allows are made unavailable, by whomever, as package
// budget defines it: a pod that is not ready comes first, but is bounded too. A pod on which this SidecarSet has begun an update is
// given the newest spec at once. Beside may be nil. Whoever updates the pods has to Set each before the next call.
func (f *Fleet) Select(s *Strategy, now time.Time, beside *Beside) Selection {
	unavailable, again := f.unavailable(s.MinReady, now)
	if len(f.outdated) == 0 || len(f.outdated) == f.counts.NotUpgradable && !s.Recreate {
		_, _, givenUp := f.missing(now)
		return Selection{Again: Earliest(again, givenUp)}
	}
	switch {
	case s.Paused:
		return Selection{Held: HoldPaused}
	case s.Halted, s.MaxFailed > 0 && f.counts.FailedUpdated >= s.MaxFailed:
		return f.failedOnly(s, now)
	}
	allowed := f.outdatedInAll() - s.kept(f.counts.Matched)
	if allowed <= 0 {
		return Selection{Held: HoldPartition}
	}
	candidates, retry := f.candidates(s, now)
	if len(candidates) == 0 {
		if !retry.IsZero() {
			return Selection{Held: HoldRetry, Again: retry}
		}
		if f.outdatedInAll() > f.counts.NotUpgradable {
			return Selection{Held: HoldSelector}
		}
		return Selection{}
	}
	b := f.budgets(s, unavailable, beside, now)
	selection := b.take(s.order(candidates, labelCounts{total: f.counts.Matched, values: f.labels}), allowed)
	selection.Again = Earliest(Earliest(again, retry), b.again)
	return selection
}

// failedOnly goes on with pods that a new spec may repair although the rollout has paused: they have failed and are outdated.
func (f *Fleet) failedOnly(s *Strategy, now time.Time) Selection {
	selection := Selection{Held: HoldFailures}
	candidates, retry := f.candidates(s, now)
	for _, pod := range s.order(candidates, labelCounts{}) {
		if pod.Failed {
			selection.Pods = append(selection.Pods, pod.Key)
		}
	}
	selection.Again = retry
	return selection
}

// outdatedInAll counts every pod that is not updated, also those that cannot be: the partition is of all.
func (f *Fleet) outdatedInAll() int { return f.counts.Matched - f.counts.Updated }

func (f *Fleet) candidates(s *Strategy, now time.Time) (candidates []*Pod, retry time.Time) {
	for _, pod := range f.outdated {
		if pod.State == NotUpgradable && (!s.Recreate || pod.InFlight) {
			continue
		}
		if s.Selector != nil && !s.Selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if now.Before(pod.RetryAt) {
			retry = Earliest(retry, pod.RetryAt)
			continue
		}
		candidates = append(candidates, pod)
	}
	return candidates, retry
}

// Earliest is the earlier of two times; a zero time is none.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
