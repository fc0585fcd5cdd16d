package status_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/status"
)

func TestMessagesSayHowFarAndWhy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		observed       status.Observed
		maxUnavailable *intstr.IntOrString
		notUpdate      bool
		lastProgress   time.Duration
		kind, want     string // reason and message of this condition
	}{
		"held": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 2, UpdatedReady: 1, InFlight: 1}, Held: rollout.HoldUnavailable},
			kind:     v1beta1.ConditionProgressing, want: "Updating: 2 of 5 pods are updated, 1 of them are ready; held by " + string(rollout.HoldUnavailable),
		},
		"held by pods of another namespace": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 2, UpdatedReady: 1}, Held: rollout.HoldUnavailable, Holders: "tenant/web-0, 3 more"},
			kind:     v1beta1.ConditionProgressing, want: "Updating: 2 of 5 pods are updated, 1 of them are ready; held by " + string(rollout.HoldUnavailable) + "; unavailable: tenant/web-0, 3 more",
		},
		"not held": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 2, UpdatedReady: 1}},
			kind:     v1beta1.ConditionProgressing, want: "Updating: 2 of 5 pods are updated, 1 of them are ready",
		},
		"paused by failures": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 2, FailedUpdated: 2}, Held: rollout.HoldFailures},
			kind:     v1beta1.ConditionProgressing, want: "PausedByFailures: 2 of 5 pods are updated, 0 of them are ready; 2 pods have failed: change the spec to go on",
		},
		"too late": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5}}, lastProgress: 11 * time.Minute,
			kind: v1beta1.ConditionProgressing, want: "ProgressDeadlineExceeded: 0 of 5 pods are updated, 0 of them are ready; no progress for 10m0s",
		},
		"selector reached": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 2, UpdatedReady: 2}, Held: rollout.HoldSelector},
			kind:     v1beta1.ConditionProgressing, want: string(rollout.HoldSelector) + ": 2 of 5 pods are updated, 2 of them are ready; the others keep the old version",
		},
		"partition, one is in flight": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 2, UpdatedReady: 2, InFlight: 1}, Held: rollout.HoldPartition},
			kind:     v1beta1.ConditionProgressing, want: "Updating: 2 of 5 pods are updated, 2 of them are ready; held by " + string(rollout.HoldPartition),
		},
		"partition, one is not ready": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 2, UpdatedReady: 1}, Held: rollout.HoldPartition},
			kind:     v1beta1.ConditionProgressing, want: "Updating: 2 of 5 pods are updated, 1 of them are ready; held by " + string(rollout.HoldPartition),
		},
		"held by something else, nothing in flight": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 2, UpdatedReady: 2}, Held: rollout.HoldUnavailable},
			kind:     v1beta1.ConditionProgressing, want: "Updating: 2 of 5 pods are updated, 2 of them are ready; held by " + string(rollout.HoldUnavailable),
		},
		"too few, one allowed by default": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Ready: 3}},
			kind:     v1beta1.ConditionAvailable, want: "MinimumUnavailable: 3 of 5 pods are ready; at most 1 may be unavailable",
		},
		"enough, by number": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Ready: 3}}, maxUnavailable: new(intstr.FromInt32(2)),
			kind: v1beta1.ConditionAvailable, want: "MinimumAvailable: 3 of 5 pods are ready",
		},
		"too few, by percentage, rounded up": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Ready: 2}}, maxUnavailable: new(intstr.FromString("30%")),
			kind: v1beta1.ConditionAvailable, want: "MinimumUnavailable: 2 of 5 pods are ready; at most 2 may be unavailable",
		},
		"a percentage that is none counts as the default": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Ready: 3}}, maxUnavailable: new(intstr.FromString("x")),
			kind: v1beta1.ConditionAvailable, want: "MinimumUnavailable: 3 of 5 pods are ready; at most 1 may be unavailable",
		},
		"not updated": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 1, UpdatedReady: 1}, Held: rollout.HoldPaused}, notUpdate: true,
			kind: v1beta1.ConditionProgressing, want: "NotUpdate: 1 of 5 pods are updated, 1 of them are ready; running pods are left alone",
		},
		"paused": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 1, UpdatedReady: 1}, Held: rollout.HoldPaused},
			kind:     v1beta1.ConditionProgressing, want: "Paused: 1 of 5 pods are updated, 1 of them are ready",
		},
		"one has failed and paused it": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 1, FailedUpdated: 1}, Held: rollout.HoldFailures},
			kind:     v1beta1.ConditionProgressing, want: "PausedByFailures: 1 of 5 pods are updated, 0 of them are ready; 1 pod has failed: change the spec to go on",
		},
		"the others cannot be updated": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 3, UpdatedReady: 3, NotUpgradable: 2}},
			kind:     v1beta1.ConditionProgressing, want: "NotUpgradable: 3 of 5 pods are updated, 3 of them are ready; 2 pods cannot be updated in place and keep the old version",
		},
		"one cannot be updated": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 4, UpdatedReady: 4, NotUpgradable: 1}},
			kind:     v1beta1.ConditionProgressing, want: "NotUpgradable: 4 of 5 pods are updated, 4 of them are ready; 1 pod cannot be updated in place and keeps the old version",
		},
		"some cannot be updated, an updated one is not ready": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 3, UpdatedReady: 2, NotUpgradable: 2}},
			kind:     v1beta1.ConditionProgressing, want: "Updating: 3 of 5 pods are updated, 2 of them are ready",
		},
		"complete": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 5, UpdatedReady: 5}},
			kind:     v1beta1.ConditionProgressing, want: "Completed: 5 of 5 pods are updated, 5 of them are ready",
		},
		"too few, where none may be unavailable": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Ready: 4}}, maxUnavailable: new(intstr.FromInt32(0)),
			kind: v1beta1.ConditionAvailable, want: "MinimumUnavailable: 4 of 5 pods are ready; at most 0 may be unavailable",
		},
		"a failure before what cannot be updated, and what was not injected": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Failed: 1, NotUpgradable: 1}, NotInjected: 1},
			kind:     v1beta1.ConditionDegraded, want: "UpdateFailed: 1 pod has failed",
		},
		"what cannot be updated before what was not injected": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, NotUpgradable: 1}, NotInjected: 1},
			kind:     v1beta1.ConditionDegraded, want: "NotUpgradable: 1 pod cannot be updated in place",
		},
		"not injected, with an example": {
			observed: status.Observed{NotInjected: 2, Example: "shop/web: no webhook"},
			kind:     v1beta1.ConditionDegraded, want: "NotInjected: 2 pods were not injected, as shop/web: no webhook",
		},
		"one was not injected": {
			observed: status.Observed{NotInjected: 1},
			kind:     v1beta1.ConditionDegraded, want: "NotInjected: 1 pod was not injected",
		},
		"all is well": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Updated: 5, UpdatedReady: 5, Ready: 5}},
			kind:     v1beta1.ConditionDegraded, want: "AsExpected: ",
		},
		"failed, with an example": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, Failed: 2}, Example: "shop/web: no such image"},
			kind:     v1beta1.ConditionDegraded, want: "UpdateFailed: 2 pods have failed, as shop/web: no such image",
		},
		"not upgradable, without one": {
			observed: status.Observed{Counts: rollout.Counts{Matched: 5, NotUpgradable: 3}},
			kind:     v1beta1.ConditionDegraded, want: "NotUpgradable: 3 pods cannot be updated in place",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set()
			s.Spec.UpdateStrategy.MaxUnavailable = tc.maxUnavailable
			if tc.notUpdate {
				s.Spec.UpdateStrategy.Type = v1beta1.SidecarSetNotUpdate
			}
			s.Status.LastProgressTime = &metav1.Time{Time: now.Add(-tc.lastProgress)}
			next, _ := status.Next(s, &tc.observed, now)
			c := meta.FindStatusCondition(next.Conditions, tc.kind)
			if got := c.Reason + ": " + c.Message; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(now) {
				t.Errorf("generation %d, since %s", c.ObservedGeneration, c.LastTransitionTime)
			}
		})
	}
}

func TestEachCounterIsItsOwn(t *testing.T) {
	t.Parallel()
	next, _ := status.Next(set(), &status.Observed{
		Counts:      rollout.Counts{Matched: 10, Updated: 9, Ready: 8, UpdatedReady: 7, InFlight: 6, FailedUpdated: 5, NotUpgradable: 4},
		NotInjected: 3, Revision: "r", CollisionCount: new(int32(2)),
	}, now)
	got := []int32{
		next.MatchedPods, next.UpdatedPods, next.ReadyPods, next.UpdatedReadyPods, next.UpdatingPods, next.FailedPods, next.NotUpgradablePods,
		next.NotInjectedPods, *next.CollisionCount,
	}
	for i, want := range []int32{10, 9, 8, 7, 6, 5, 4, 3, 2} {
		if got[i] != want {
			t.Errorf("counter %d: %d, want %d", i, got[i], want)
		}
	}
	if next.LatestRevision != "r" || next.ObservedGeneration != 3 {
		t.Errorf("%+v", next)
	}
}

func TestPauseOfAnEarlierRevisionIsForgotten(t *testing.T) {
	t.Parallel()
	s := set()
	s.Status = v1beta1.SidecarSetStatus{PausedRevision: "old", ObservedGeneration: s.Generation}
	if next, _ := status.Next(s, &status.Observed{Revision: "new"}, now); next.PausedRevision != "" {
		t.Errorf("paused revision %s", next.PausedRevision)
	}
	if next, _ := status.Next(s, &status.Observed{Revision: "old"}, now); next.PausedRevision != "old" {
		t.Error("the pause of the newest revision is forgotten")
	}
}

func TestAnotherCollisionCountIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	count := func(n int32) *v1beta1.SidecarSetStatus {
		return &v1beta1.SidecarSetStatus{MatchedPods: 100, CollisionCount: &n}
	}
	if due := status.Due(count(1), count(2), now); !due.Equal(now) {
		t.Errorf("written %s later", due.Sub(now))
	}
	if due := status.Due(count(1), count(1), now); due.Equal(now) {
		t.Error("written although it is the same")
	}
}
