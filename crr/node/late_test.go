package node

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/test/kit/fakecri"
)

// within sets activeDeadlineSeconds.
func within(seconds int64) func(*crr.Request) {
	return func(r *crr.Request) { r.Spec.ActiveDeadlineSeconds = &seconds }
}

func TestWaitingRequestThatCannotBeWrittenDoesNotHoldUpTheFirst(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(n *node) {
		n.fail = func(r *crr.Request) error {
			if r.Name == "second" {
				return errors.New("admission webhook denied the request")
			}
			return nil
		}
	})
	pod := n.pod("web", app())
	n.request("first", pod, nil, "app")
	n.request("second", pod, nil, "app")
	if got := n.ends("first"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
}

// What was decided while all slots were taken is decided again when one is free.
func TestContainerIsNotStoppedWhenItsRequestEndsWhileItWaitsForASlot(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(n *node){
		"deadline exceeded": func(n *node) {
			if got := n.ends("late"); got != "failed "+crr.ReasonDeadlineExceeded {
				n.t.Errorf("ended as %s", got)
			}
		},
		"deleted": func(n *node) { n.deleteRequest("late") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, func(n *node) { n.maxConcurrent = 1 })
			stubborn := n.pod("stubborn", fakecri.Container{Name: "app", Program: fakecri.Program{IgnoreTerm: true}})
			n.request("stubborn", stubborn, func(r *crr.Request) { r.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(3)) }, "app")
			n.eventually("the only slot is taken", func() bool { return len(n.stops()) == 1 })
			n.request("late", n.pod("web", app()), within(1), "app")
			n.eventually("the other request has begun", func() bool { return len(n.current("late").Status.ContainerRecreateStates) > 0 })
			end(n)
			if got := n.ends("stubborn"); got != succeeded {
				t.Errorf("the other request ended as %s", got)
			}
			n.eventually("the action has got its slot", func() bool { return n.underWay() == 0 })
			if stops := n.stops(); len(stops) != 1 {
				t.Errorf("%d stops, want only the stop for the other request: %+v", len(stops), stops)
			}
		})
	}
}

func TestContainerIsNotStoppedWhenItsRequestEndsDuringThePreStopHook(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(n *node){
		"deadline exceeded": func(n *node) { n.ends("late") },
		"deleted":           func(n *node) { n.deleteRequest("late") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			pod := n.pod("web", app())
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 2}}}
			n.putPod(pod)
			n.request("late", pod, within(1), "app")
			n.eventually("the hook runs", func() bool { return n.underWay() == 1 })
			end(n)
			n.eventually("the hook has ended", func() bool { return n.underWay() == 0 })
			if stops := n.stops(); len(stops) != 0 {
				t.Errorf("stopped for a request that had ended: %+v", stops)
			}
		})
	}
}

// The container went on after the hook, and may have been taken into service again since.
func TestPreStopHookOfAStopThatWasGivenUpIsRunAgainForTheNext(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.runtime.Commands["drain"] = fakecri.Command{Takes: 1500 * time.Millisecond}
	pod := n.pod("web", app())
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: new(command("drain"))}
	n.putPod(pod)
	n.request("late", pod, within(1), "app")
	n.eventually("the hook runs", func() bool { return n.underWay() == 1 })
	n.ends("late")
	n.eventually("the hook has ended", func() bool { return n.underWay() == 0 })
	n.request("again", pod, nil, "app")
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s: %s", got, n.current("again").Status.Message)
	}
	if execs := n.runtime.Calls("ExecSync"); len(execs) != 2 {
		t.Errorf("the hook was run %d times, want once for each request", len(execs))
	}
}

func TestEndedAndDeletedRequestsLeaveNothingInMemory(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("web", app())
	n.request("ended", pod, nil, "app")
	n.ends("ended")
	n.deleteRequest("ended") // the manager takes the label away
	n.runtime.ActAsKubelet(fakecri.Kubelet{Delay: func(int) time.Duration { return time.Hour }})
	n.request("deleted", pod, force, "app")
	n.eventually("a container is stopped", func() bool { return len(n.stops()) == 2 })
	n.deleteRequest("deleted")
	n.eventually("nothing is left of the requests", func() bool {
		return len(n.worker.engine.Pods()) == 0 && n.underWay() == 0
	})
}

// A call of the runtime may take ten seconds, and there are two for each look at a container.
func TestDeadlinesAreKeptWhileTheRuntimeDoesNotAnswer(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("web", app())
	n.runtime.SetFault("ListContainers", fakecri.Fault{Hang: true})
	n.request("first", pod, within(2), "app")
	n.request("second", pod, within(1), "app")
	for _, name := range []string{"first", "second"} {
		if got := n.ends(name); got != "failed "+crr.ReasonDeadlineExceeded {
			t.Errorf("%s ended as %s", name, got)
		}
		request := n.current(name)
		if late := request.Status.CompletionTime.Sub(crr.Deadline(request, 0)); late < 0 || late > 4*time.Second {
			t.Errorf("%s ended %s after its deadline", name, late)
		}
	}
	n.runtime.ClearFaults()
}
