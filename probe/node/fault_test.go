package node_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
)

// A panic in the goroutine of a command ended the daemon of the node.
func TestAProbeWhoseCommandPanicsHarmsNoOther(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.answers(func(_, command string) (cri.ExecResult, error) {
			if command == "bad" {
				panic("planted")
			}
			return cri.ExecResult{Stdout: "idle"}, nil
		})
		w.run()
		w.putPod("a", 1, "game")
		w.putPod("b", 1, "game")
		w.want(entry("a", execProbe("m#p", "game", "bad")), entry("b", execProbe("m#p", "game", "good")))
		w.pass(time.Minute)
		var other v1alpha1.ProbeState
		for _, pod := range w.writes[len(w.writes)-1].PodProbeStatuses {
			if pod.Name == "b" {
				other = pod.ProbeStates[0].State
			}
		}
		if other != v1alpha1.ProbeSucceeded {
			t.Errorf("the probe of the other pod is %q", other)
		}
	})
}
