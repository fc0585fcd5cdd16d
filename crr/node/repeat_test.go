package node

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/refit-project/refit/test/kit/fakecri"
)

// If a runtime reports that a call has succeeded and shows the contrary, the call is repeated after a second, and not
// immediately.
func TestRuntimeThatReportsSuccessWithoutEffect(t *testing.T) {
	t.Parallel()
	// From the end of a first instance kubelet does not back off, so that one is not removed.
	for method, restartCount := range map[string]uint32{"StopContainer": 0, "RemoveContainer": 1} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.runtime.ActAsKubelet(fakecri.Kubelet{Delay: func(int) time.Duration { return 3 * time.Second }, OnStart: n.started})
			pod := n.pod("web", fakecri.Container{Name: "app", RestartCount: restartCount})
			n.runtime.SetFault(method, fakecri.Fault{Code: codes.NotFound}) // success, as CRI wants it
			n.request("again", pod, nil, "app")
			// The first removal comes with the stop, which is another action.
			n.eventually("three calls", func() bool { return len(n.runtime.Calls(method)) > 2 })
			n.runtime.ClearFaults()
			if calls := n.runtime.Calls(method); calls[2].At.Sub(calls[1].At) < time.Second {
				t.Errorf("called again after %s, want %s", calls[2].At.Sub(calls[1].At), time.Second)
			}
			if got := n.ends("again"); got != succeeded {
				t.Errorf("ended as %s", got)
			}
		})
	}
}

// A removal kills a running container. A runtime that reports a stop while the container still runs, or does not report
// its state, must not be asked to remove it.
func TestContainerThatHasNotStoppedIsNotRemoved(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]codes.Code{"it is seen running": codes.OK, "nobody knows": codes.Unavailable, "the runtime denies it": codes.NotFound} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.runtime.ActAsKubelet(fakecri.Kubelet{Delay: func(int) time.Duration { return time.Millisecond }, OnStart: n.started})
			pod := n.pod("web", fakecri.Container{Name: "app", RestartCount: 1}) // kubelet backs off from its end unless it is removed
			n.runtime.SetFault("StopContainer", fakecri.Fault{Code: codes.NotFound, Delay: 500 * time.Millisecond, Times: 1})
			n.request("again", pod, nil, "app")
			n.eventually("a stop", func() bool { return len(n.runtime.Calls("StopContainer")) > 0 })
			if seen != codes.OK {
				before := len(n.runtime.Calls("ContainerStatus"))
				n.runtime.SetFault("ContainerStatus", fakecri.Fault{Code: seen})
				n.eventually("a look at the container", func() bool { return len(n.runtime.Calls("ContainerStatus")) > before })
				n.runtime.ClearFaults()
			}
			if got := n.ends("again"); got != succeeded {
				t.Errorf("ended as %s", got)
			}
			stops, removals := n.runtime.Calls("StopContainer"), n.runtime.Calls("RemoveContainer")
			if len(stops) < 2 || len(removals) > 0 && removals[0].At.Before(stops[1].At) {
				t.Errorf("stops %v, removals %v: removed, and so killed without grace, before it had stopped", stops, removals)
			}
		})
	}
}
