package workload_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/rollout/workload"
)

func TestARefusedWriteCountsForItsTemplateUntilItIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 2)
	w.edit(image("app:2"))
	w.controller()
	until := w.now.Add(time.Minute)
	for name, tt := range map[string]struct {
		revision string
		at       time.Time
		failed   int32
	}{
		"refused":          {w.target().Revision, w.now, 1},
		"another template": {"web-r1", w.now, 0},
		"tried again":      {w.target().Revision, until, 0},
	} {
		refused := map[types.UID]workload.RefusedWrite{w.pods["web-1"].UID: {Revision: tt.revision, Message: "not signed", Until: until}}
		observed := workload.Observation{Workload: w.target(), Pods: slices.Collect(maps.Values(w.pods)), Pulls: w.registry.pulls(), Refused: refused}
		d := workload.Next(w.policy, observed, tt.at)
		if d.Status.FailedPods != tt.failed || d.Takes() != (tt.failed == 0) || tt.failed > 0 && (d.Again.IsZero() || d.Again.After(until)) {
			t.Errorf("%s: %d pods have failed, takes a pod %t, again %s", name, d.Status.FailedPods, d.Takes(), d.Again)
		}
	}
}
