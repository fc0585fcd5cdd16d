package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/status"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func set() *v1beta1.SidecarSet {
	return &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", Generation: 3}}
}

// The time of an update that was paused, or held by a partition, begins when it is resumed.
func TestTheDeadlineBeginsWhenAnUpdateIsResumed(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"Paused": status.ReasonUpdating, "Partition": status.ReasonUpdating, status.ReasonCompleted: status.ReasonUpdating,
		status.ReasonUpdating: status.ReasonDeadlineExceeded, status.ReasonDeadlineExceeded: status.ReasonDeadlineExceeded,
	} {
		s := set()
		s.Status = v1beta1.SidecarSetStatus{
			ObservedGeneration: s.Generation, LatestRevision: "r", LastProgressTime: &metav1.Time{Time: now.Add(-time.Hour)},
			Conditions: []metav1.Condition{{Type: v1beta1.ConditionProgressing, Status: metav1.ConditionUnknown, Reason: reason}},
		}
		next, again := status.Next(s, &status.Observed{Counts: rollout.Counts{Matched: 3, Ready: 3}, Revision: "r", Held: rollout.HoldUnavailable}, now)
		if got := meta.FindStatusCondition(next.Conditions, v1beta1.ConditionProgressing).Reason; got != want {
			t.Errorf("after %s: %s, want %s", reason, got, want)
		}
		if want == status.ReasonUpdating && !again.After(now) {
			t.Errorf("after %s: not computed again", reason)
		}
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		observed                         status.Observed
		change                           func(*v1beta1.SidecarSet)
		progressing, available, degraded string // status and reason
	}{
		"done":    {observed: status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 3, Ready: 3, UpdatedReady: 3}}, progressing: "True Completed", available: "True MinimumAvailable", degraded: "False AsExpected"},
		"no pods": {progressing: "True Completed", available: "True MinimumAvailable", degraded: "False AsExpected"},
		"under way": {
			observed:    status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 1, Ready: 2, InFlight: 1}, Held: rollout.HoldUnavailable},
			progressing: "True Updating", available: "True MinimumAvailable", degraded: "False AsExpected",
		},
		"partition": {
			observed:    status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 1, Ready: 3, UpdatedReady: 1}, Held: rollout.HoldPartition},
			progressing: "True Partition", available: "True MinimumAvailable", degraded: "False AsExpected",
		},
		"paused": {
			observed:    status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 1, Ready: 1, UpdatedReady: 1}, Held: rollout.HoldPaused},
			progressing: "Unknown Paused", available: "False MinimumUnavailable", degraded: "False AsExpected",
		},
		"not updated": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 3, Ready: 3}, Held: rollout.HoldPaused},
			change: func(s *v1beta1.SidecarSet) {
				s.Spec.UpdateStrategy.Type = v1beta1.SidecarSetNotUpdate
			}, progressing: "Unknown NotUpdate", available: "True MinimumAvailable", degraded: "False AsExpected",
		},
		"failed": {
			observed:    status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 1, Ready: 2, InFlight: 1, Failed: 1}, Held: rollout.HoldFailures},
			progressing: "False PausedByFailures", available: "True MinimumAvailable", degraded: "True UpdateFailed",
		},
		"not upgradable": {
			observed:    status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 1, Ready: 3, UpdatedReady: 1, NotUpgradable: 2}},
			progressing: "True NotUpgradable", available: "True MinimumAvailable", degraded: "True NotUpgradable",
		},
		"none upgradable": {
			observed:    status.Observed{Counts: rollout.Counts{Matched: 2, Ready: 2, NotUpgradable: 2}},
			progressing: "True NotUpgradable", available: "True MinimumAvailable", degraded: "True NotUpgradable",
		},
		"a pod is being replaced": {
			observed:    status.Observed{Counts: rollout.Counts{Matched: 2, Updated: 2, Ready: 2, UpdatedReady: 2}, Leaving: 1},
			progressing: "True Updating", available: "True MinimumAvailable", degraded: "False AsExpected",
		},
		"not injected": {observed: status.Observed{NotInjected: 1}, progressing: "True Completed", available: "True MinimumAvailable", degraded: "True NotInjected"},
		"too late": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 1, Ready: 2}, Revision: "r"},
			change: func(s *v1beta1.SidecarSet) {
				s.Spec.UpdateStrategy.ProgressDeadlineSeconds = new(int32(60))
				s.Status = v1beta1.SidecarSetStatus{UpdatedPods: 1, LatestRevision: "r", LastProgressTime: &metav1.Time{Time: now.Add(-time.Minute)}}
			}, progressing: "False ProgressDeadlineExceeded", available: "True MinimumAvailable", degraded: "False AsExpected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set()
			if tc.change != nil {
				tc.change(s)
			}
			next, _ := status.Next(s, &tc.observed, now)
			for kind, want := range map[string]string{
				v1beta1.ConditionProgressing: tc.progressing, v1beta1.ConditionAvailable: tc.available, v1beta1.ConditionDegraded: tc.degraded,
			} {
				if c := meta.FindStatusCondition(next.Conditions, kind); string(c.Status)+" "+c.Reason != want {
					t.Errorf("%s: %s %s: %s; want %s", kind, c.Status, c.Reason, c.Message, want)
				}
			}
			s.Status = *next
			if same, _ := status.Next(s, &tc.observed, now); !cmp.Equal(same, next) {
				t.Errorf("a second look changes the status:\n%s", cmp.Diff(next, same))
			}
		})
	}
}

// A RestartRollout of three pods led to eight Events of their SidecarSet.
func TestAnUpdateThatIsCompleteStaysSoWhenAPodIsNotReadyForAnotherReason(t *testing.T) {
	t.Parallel()
	all, restarting := rollout.Counts{Matched: 3, Updated: 3, Ready: 3, UpdatedReady: 3}, rollout.Counts{Matched: 3, Updated: 3, Ready: 2, UpdatedReady: 2}
	for name, tt := range map[string]struct {
		then   status.Observed
		change func(*v1beta1.SidecarSet)
		want   string
	}{
		"a pod is restarted":       {then: status.Observed{Counts: restarting, Revision: "r"}, want: status.ReasonCompleted},
		"a sidecar is restarted":   {then: status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 3, Ready: 2, UpdatedReady: 2, InFlight: 1}, Revision: "r"}, want: status.ReasonCompleted},
		"a pod is added":           {then: status.Observed{Counts: rollout.Counts{Matched: 4, Updated: 4, Ready: 3, UpdatedReady: 3}, Revision: "r"}, want: status.ReasonCompleted},
		"an old pod is added":      {then: status.Observed{Counts: rollout.Counts{Matched: 4, Updated: 3, Ready: 4, UpdatedReady: 3}, Revision: "r"}, want: status.ReasonUpdating},
		"another revision":         {then: status.Observed{Counts: restarting, Revision: "s"}, want: status.ReasonUpdating},
		"a pod was evicted":        {then: status.Observed{Counts: all, Evicted: 1, Revision: "r"}, want: status.ReasonUpdating},
		"a pod is to be evicted":   {then: status.Observed{Counts: all, Evictions: 1, Revision: "r"}, want: status.ReasonUpdating},
		"a pod cannot be upgraded": {then: status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 2, NotUpgradable: 1}, Revision: "r"}, want: status.ReasonNotUpgradable},
		"others evict a pod":       {then: status.Observed{Counts: restarting, Leaving: 1, Revision: "r"}, want: status.ReasonCompleted},
	} {
		s := set()
		next, _ := status.Next(s, &status.Observed{Counts: all, Revision: "r"}, now)
		s.Status = *next
		next, _ = status.Next(s, &tt.then, now)
		if c := meta.FindStatusCondition(next.Conditions, v1beta1.ConditionProgressing); c.Reason != tt.want {
			t.Errorf("%s: %s: %s", name, c.Reason, c.Message)
		}
		if news := status.Changed(&v1beta1.SidecarSet{Status: s.Status}, &v1beta1.SidecarSet{Status: *next}); tt.want == status.ReasonCompleted && len(news) > 1 {
			t.Errorf("%s: Events %+v", name, news)
		}
	}
}

func TestAPodDisruptionBudgetThatHoldsARolloutIsNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		observed status.Observed
		want     string
	}{
		{status.Observed{Held: rollout.HoldDisruption, Disruption: "shop/db"}, "0 of 2 pods are updated, 0 of them are ready; held by PodDisruptionBudget shop/db"},
		{status.Observed{Held: rollout.HoldUnavailable, Disruption: "shop/db"}, "0 of 2 pods are updated, 0 of them are ready; held by MaxUnavailable, and by PodDisruptionBudget shop/db"},
		{status.Observed{Held: rollout.HoldUnavailable, Evicted: 1, Evictions: 2}, "0 of 2 pods are updated, 0 of them are ready; 1 evicted pods are not replaced, 2 pods are to be evicted; held by MaxUnavailable"},
		{status.Observed{Held: rollout.HoldUnavailable, Evictions: 1}, "0 of 2 pods are updated, 0 of them are ready; 1 pods are to be evicted; held by MaxUnavailable"},
		{status.Observed{Held: rollout.HoldUnavailable, Leaving: 1}, "0 of 2 pods are updated, 0 of them are ready; 1 pods are being replaced; held by MaxUnavailable"},
	} {
		tt.observed.Counts.Matched = 2
		next, _ := status.Next(set(), &tt.observed, now)
		if c := meta.FindStatusCondition(next.Conditions, v1beta1.ConditionProgressing); c.Reason != status.ReasonUpdating || c.Message != tt.want {
			t.Errorf("%s: %s", c.Reason, c.Message)
		}
	}
}

func TestProgressDeadlineBeginsWithTheLastProgress(t *testing.T) {
	t.Parallel()
	s := set()
	o := &status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 1, Ready: 3}, Revision: "r"}
	next, again := status.Next(s, o, now)
	if !again.Equal(now.Add(10 * time.Minute)) {
		t.Errorf("again at %s", again)
	}
	s.Status = *next
	o.Counts.Updated = 2
	next, again = status.Next(s, o, now.Add(time.Minute))
	if !again.Equal(now.Add(11 * time.Minute)) {
		t.Errorf("again at %s", again)
	}
	s.Status = *next
	o.Counts.UpdatedReady = 1
	next, again = status.Next(s, o, now.Add(2*time.Minute))
	if !again.Equal(now.Add(12 * time.Minute)) {
		t.Errorf("after an updated pod has become ready: again at %s", again)
	}
	s.Status = *next
	o.Counts.Updated, o.Counts.UpdatedReady, o.Counts.Ready = 1, 0, 2 // one is gone, for example because its workload is scaled down
	if _, again = status.Next(s, o, now.Add(3*time.Minute)); !again.Equal(now.Add(12 * time.Minute)) {
		t.Errorf("without progress: again at %s", again)
	}
}

// It was so before, and the pod that is not ready is the concern of the condition Available.
func TestAnUpdateOfAllThatCanBeUpdatedStaysComplete(t *testing.T) {
	t.Parallel()
	s := set()
	next, _ := status.Next(s, &status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 2, Ready: 3, UpdatedReady: 2, NotUpgradable: 1}, Revision: "r"}, now)
	s.Status = *next
	for name, tt := range map[string]struct {
		counts rollout.Counts
		want   string
	}{
		"a pod is restarted":                         {rollout.Counts{Matched: 3, Updated: 2, Ready: 2, UpdatedReady: 1, NotUpgradable: 1}, status.ReasonNotUpgradable},
		"all can be updated, and one has just been":  {rollout.Counts{Matched: 3, Updated: 3, Ready: 2, UpdatedReady: 2}, status.ReasonUpdating},
		"the pod that could not be updated is ready": {rollout.Counts{Matched: 3, Updated: 3, Ready: 3, UpdatedReady: 3}, status.ReasonCompleted},
	} {
		next, _ := status.Next(s, &status.Observed{Counts: tt.counts, Revision: "r"}, now)
		if c := meta.FindStatusCondition(next.Conditions, v1beta1.ConditionProgressing); c.Reason != tt.want {
			t.Errorf("%s: %s: %s", name, c.Reason, c.Message)
		}
	}
}

func TestPauseByFailuresLastsUntilTheSpecChanges(t *testing.T) {
	t.Parallel()
	s := set()
	next, _ := status.Next(s, &status.Observed{Revision: "r", Held: rollout.HoldFailures, Counts: rollout.Counts{Failed: 1}}, now)
	s.Status = *next
	if !status.Paused(s, "r") || status.Paused(s, "other") {
		t.Error("not paused")
	}
	if s.Generation++; status.Paused(s, "r") {
		t.Error("paused although the user has changed the spec")
	}
	if next, _ = status.Next(s, &status.Observed{Revision: "r"}, now); next.PausedRevision != "" {
		t.Errorf("paused revision %s", next.PausedRevision)
	}
}

// The deadline of a version does not begin with the last pod of the version before.
func TestProgressDeadlineBeginsWithEachVersion(t *testing.T) {
	t.Parallel()
	s := set()
	next, _ := status.Next(s, &status.Observed{Counts: rollout.Counts{Matched: 3, Updated: 3, Ready: 3, UpdatedReady: 3}, Revision: "r1"}, now)
	s.Status = *next
	later := now.Add(time.Hour)
	next, again := status.Next(s, &status.Observed{Counts: rollout.Counts{Matched: 3, Ready: 3}, Revision: "r2"}, later)
	if c := meta.FindStatusCondition(next.Conditions, v1beta1.ConditionProgressing); c.Reason != status.ReasonUpdating || !again.Equal(later.Add(10*time.Minute)) {
		t.Errorf("%s: %s, again at %s", c.Reason, c.Message, again)
	}
}
