package status_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/status"
)

func TestCountersAreWrittenTheLessOftenTheMorePodsThereAre(t *testing.T) {
	t.Parallel()
	written := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	old := v1beta1.SidecarSetStatus{
		ObservedGeneration: 3, LatestRevision: "r", MatchedPods: 100, UpdatedPods: 10,
		Conditions: []metav1.Condition{{Type: v1beta1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "Updating", Message: "10 of 100"}},
	}
	for name, tc := range map[string]struct {
		change func(*v1beta1.SidecarSetStatus)
		want   time.Duration
	}{
		"counters and messages": {func(s *v1beta1.SidecarSetStatus) { s.UpdatedPods, s.Conditions[0].Message = 11, "11 of 100" }, 10 * time.Second},
		"few pods":              {func(s *v1beta1.SidecarSetStatus) { s.MatchedPods = 1 }, 500 * time.Millisecond},
		"many pods":             {func(s *v1beta1.SidecarSetStatus) { s.MatchedPods = 5000 }, 15 * time.Second},
		"another reason":        {func(s *v1beta1.SidecarSetStatus) { s.Conditions[0].Reason = "Completed" }, 0},
		"another status":        {func(s *v1beta1.SidecarSetStatus) { s.Conditions[0].Status = metav1.ConditionFalse }, 0},
		"a new condition": {func(s *v1beta1.SidecarSetStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: v1beta1.ConditionDegraded})
		}, 0},
		"another spec":     {func(s *v1beta1.SidecarSetStatus) { s.ObservedGeneration = 4 }, 0},
		"another revision": {func(s *v1beta1.SidecarSetStatus) { s.LatestRevision = "s" }, 0},
		"paused":           {func(s *v1beta1.SidecarSetStatus) { s.PausedRevision = "r" }, 0},
		"a collision":      {func(s *v1beta1.SidecarSetStatus) { s.CollisionCount = new(int32(1)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := old.DeepCopy()
			tc.change(next)
			if got := status.Due(&old, next, written).Sub(written); got != tc.want {
				t.Errorf("written after %s, want %s", got, tc.want)
			}
		})
	}
}
