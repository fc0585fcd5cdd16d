package control

import (
	"testing"
	"time"
)

// Its pods were updated first, never became ready, and filled maxUnavailable for good.
func TestAWorkloadThatIsBrokenAnywayDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.look()
	w.broken["web-0"], w.broken["web-1"] = w.now.Add(-time.Minute), w.now.Add(-2*time.Minute)
	w.kubelet()
	w.change(image("log:2"))
	w.rounds(6)
	if got := w.images(); got["log:2"] != 4 {
		t.Errorf("%v in the end", got)
	}
}

// What a faulty spec has taken out counts until it is ready again, also when the next spec is no better.
func TestASpecThatTakesOutPodsStopsAtMaxUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.look()
	w.change(image("bad"))
	w.rounds(6)
	w.now = w.now.Add(time.Hour)
	w.rounds(2)
	if got := w.images(); got["log:1"] != 3 {
		t.Errorf("%v with an image that cannot be pulled", got)
	}
}
