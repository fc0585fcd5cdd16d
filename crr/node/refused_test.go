package node

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/test/kit/fakecri"
)

// A runtime that refuses a stop at once has sent no signal: the program has not begun to end.
func TestRefusedStopsTakeNothingFromTheGracePeriod(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.runtime.SetFault("StopContainer", fakecri.Fault{Code: codes.Internal, Message: "shim says no", Times: 2})
	n.request("again", n.pod("web", app()), func(r *crr.Request) { r.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(20)) }, "app")
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
	for i, stop := range n.stops() {
		if stop.Timeout != 20*time.Second {
			t.Errorf("attempt %d has %s, want 20s", i+1, stop.Timeout)
		}
	}
	if len(n.stops()) != 3 {
		t.Errorf("%d attempts, want 3", len(n.stops()))
	}
}

// One that fails later has sent it: the program has been ending since then.
func TestAStopThatFailsLateHasUsedItsGracePeriod(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.runtime.SetFault("StopContainer", fakecri.Fault{Code: codes.Internal, Message: "shim is gone", Delay: 1200 * time.Millisecond, Times: 1})
	n.request("again", n.pod("web", app()), func(r *crr.Request) { r.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(20)) }, "app")
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
	stops := n.stops()
	if len(stops) != 2 || stops[0].Timeout != 20*time.Second || stops[1].Timeout >= 19*time.Second {
		t.Errorf("stops %+v, want the second with what is left of 20 s", stops)
	}
}
