package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/recheck"
)

// Hold says why no more pods are updated now, although some are outdated.
type Hold string

// The reasons.
const (
	// HoldPaused means that the user has paused the rollout.
	HoldPaused Hold = "Paused"
	// HoldFailures means that the rollout has paused itself because of too many failed pods.
	HoldFailures Hold = "PausedByFailures"
	// HoldPartition means that as many of the updatable pods are old as the partition keeps.
	HoldPartition Hold = "Partition"
	// HoldSelector means that the selector of the update matches none of the remaining pods.
	HoldSelector Hold = "Selector"
	// HoldUnavailable means that maxUnavailable pods are unavailable.
	HoldUnavailable Hold = "MaxUnavailable"
	// HoldWorkload means that the workloads of the remaining pods have as many unavailable pods as allowed.
	HoldWorkload Hold = "WorkloadMaxUnavailable"
	// HoldDisruption means that PodDisruptionBudgets do not allow updates of the remaining pods.
	HoldDisruption Hold = "PodDisruptionBudget"
	// HoldRetry means that writes to the remaining pods have failed and will be retried.
	HoldRetry Hold = "Retry"
)

// Selection is what to do next.
type Selection struct {
	// Pods are the pods to update now, in this order.
	Pods []types.NamespacedName
	// Held says why there are no more; empty if no outdated pod is left.
	Held Hold
	// Holders are pods that are unavailable, as namespace/name, if Held is HoldUnavailable or HoldWorkload; empty if only pods
	// of this selection are.
	Holders string
	// Disruption is a PodDisruptionBudget that does not allow another update, as namespace/name, or "".
	Disruption string
	// Again is when to select again.
	Again recheck.At
}

// Select returns the pods to update now. It never makes more pods unavailable than the strategy allows, as defined by
// package budget, and counts operations by others: a pod that is not ready comes first, but is limited too. A pod on
// which this SidecarSet has begun an update gets the newest spec at once. beside may be nil. The caller must call Set
// for each updated pod before it calls Select again.
func (f *Fleet) Select(s *Strategy, now time.Time, beside *Beside) Selection {
	if beside == nil {
		beside = &Beside{}
	}
	unavailable, again := f.unavailable(s.MinReady, now)
	if len(f.outdated) == 0 || len(f.outdated) == f.counts.NotUpgradable && !s.Recreate {
		_, _, givenUp := f.missing(now)
		return Selection{Again: again.Or(givenUp.Time)}
	}
	switch {
	case s.Paused:
		return Selection{Held: HoldPaused}
	case s.Halted, s.MaxFailed > 0 && f.counts.FailedUpdated >= s.MaxFailed:
		return f.failedOnly(s, now, beside)
	}
	candidates, possible, retry, doubt := f.candidates(s, now, beside)
	missing, _, _ := f.missing(now)
	allowed := possible - s.kept(f.counts.Matched+missing)
	if possible > 0 && allowed <= 0 {
		return Selection{Held: HoldPartition}
	}
	if len(candidates) == 0 {
		if !retry.IsZero() {
			return Selection{Held: HoldRetry, Again: retry.Or(doubt.Time)}
		}
		if len(f.outdated) > f.counts.NotUpgradable {
			return Selection{Held: HoldSelector, Again: doubt}
		}
		return Selection{Again: again.Or(doubt.Time)}
	}
	b := f.budgets(s, unavailable, beside, now)
	selection := b.take(s.order(candidates, labelCounts{total: f.counts.Matched, values: f.labels}), allowed)
	selection.Again = again.Or(retry.Time, doubt.Time, b.again.Time)
	return selection
}

// failedOnly selects pods that a new spec may repair although the rollout has paused itself: they have failed and are
// outdated.
func (f *Fleet) failedOnly(s *Strategy, now time.Time, beside *Beside) Selection {
	selection := Selection{Held: HoldFailures}
	candidates, _, retry, _ := f.candidates(s, now, beside)
	for _, pod := range s.order(candidates, labelCounts{}) {
		if pod.Failed {
			selection.Pods = append(selection.Pods, pod.Key)
		}
	}
	selection.Again = retry
	return selection
}

// candidates returns the pods that may be updated or evicted now. possible is the number of pods that may be updated at
// some time, of which the partition keeps some. retry is when there may be more candidates after a failed write, and
// doubt when there may be more because a namespace is no longer doubtful; both may be zero.
func (f *Fleet) candidates(s *Strategy, now time.Time, beside *Beside) (candidates []*Pod, possible int, retry, doubt recheck.At) {
	for _, pod := range f.outdated {
		if pod.Unjudged || pod.State == NotUpgradable && (!s.Recreate || f.evicted.has(pod)) {
			continue
		}
		if s.Selector != nil && !s.Selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if possible++; pod.State == NotUpgradable && pod.InFlight {
			continue // the update in progress ends first
		}
		if until := beside.Doubtful[pod.Key.Namespace]; pod.State == NotUpgradable && !until.IsZero() {
			doubt = doubt.Or(until)
			continue
		}
		if now.Before(pod.RetryAt) {
			retry = retry.Or(pod.RetryAt)
			continue
		}
		candidates = append(candidates, pod)
	}
	return candidates, possible, retry, doubt
}
