package node

import (
	"testing"
	"time"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/test/kit/fakecri"
)

// kill -9 long after SIGTERM: the next daemon leaves the container the rest of its grace period, not a whole one.
func TestGracePeriodDoesNotBeginAgainWithTheNextDaemon(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("web", fakecri.Container{Name: "app", Program: fakecri.Program{IgnoreTerm: true}})
	n.request("again", pod, func(r *crr.Request) { r.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(4)) }, "app")
	n.eventually("the stop is under way", func() bool { return len(n.stops()) == 1 })
	<-time.After(1200 * time.Millisecond)
	n.stop()
	n.startDaemon()
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
	stops := n.stops()
	if first, last := stops[0].Timeout, stops[len(stops)-1].Timeout; first != 4*time.Second || last < time.Second || last >= first {
		t.Errorf("grace of the first stop %s, of the last %s; want 4s, then what is left", first, last)
	}
}
