package node

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/test/kit/fakecri"
)

const succeeded = "succeeded " + crr.ReasonSucceeded

func app() fakecri.Container { return fakecri.Container{Name: "app"} }

func TestOneRequest(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("web", app(), fakecri.Container{Name: "log"})
	n.request("again", pod, nil, "app")
	if got := n.ends("again"); got != succeeded {
		t.Fatalf("ended as %s: %+v", got, n.current("again").Status)
	}
	if stops := n.stops(); len(stops) != 1 {
		t.Errorf("%d stops, want 1", len(stops))
	}
	if len(n.writes) != 2 {
		t.Errorf("%d status writes, want 2 (begun, ended): %+v", len(n.writes), n.writes)
	}
	n.eventually("both events are told", func() bool { return len(n.eventTexts()) == 2 })
	if events := strings.Join(n.eventTexts(), "\n"); !strings.Contains(events, "Stopping container app by ContainerRecreateRequest again") ||
		!strings.Contains(events, "ContainersRecreated") {
		t.Errorf("events: %s", events)
	}
}

// With control characters in a reason nobody could add a line to the log: the text handler quotes them, others may not.
func TestLogLinesNameWhoAskedAndWhy(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer // written by the worker alone, and read after its end
	n := newNode(t, func(n *node) { n.log = &log })
	n.request("again", n.pod("web", app()), func(r *crr.Request) {
		r.Annotations = map[string]string{v1beta1.AnnotationRequestedBy: "system:serviceaccount:ops:bot", v1beta1.AnnotationReason: "stuck\nlevel=ERROR"}
	}, "app")
	if got := n.ends("again"); got != succeeded {
		t.Fatalf("ended as %s", got)
	}
	n.stop()
	for _, message := range []string{"stopping container", "request ended"} {
		found := false
		for line := range strings.Lines(log.String()) {
			found = found || strings.Contains(line, message) &&
				strings.Contains(line, "requestedBy=system:serviceaccount:ops:bot") && strings.Contains(line, `reason="stucklevel=ERROR"`)
		}
		if !found {
			t.Errorf("no line %q with both:\n%s", message, log.String())
		}
	}
}

// Several requests on one pod run one after the other in the order of creation, and none gets stuck.
func TestRequestsOfOnePodRunInOrder(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("web", app())
	const many = 5
	for i := range many {
		n.request(fmt.Sprintf("again-%d", i), pod, func(r *crr.Request) { r.Spec.Strategy.ForceRecreate = true }, "app")
	}
	for i := range many {
		if got := n.ends(fmt.Sprintf("again-%d", i)); got != succeeded {
			t.Errorf("request %d ended as %s", i, got)
		}
		if i > 0 && n.current(fmt.Sprintf("again-%d", i)).Status.CompletionTime.Before(n.current(fmt.Sprintf("again-%d", i-1)).Status.CompletionTime) {
			t.Errorf("request %d ended before request %d", i, i-1)
		}
	}
	if stops := n.stops(); len(stops) != many {
		t.Errorf("%d stops, want %d", len(stops), many)
	}
}

// A request of an old pod of the same name, as a StatefulSet leaves it, ends by itself and holds nothing up.
func TestRequestOfAnOldPodDoesNotBlock(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("web-0", app())
	old := pod.DeepCopy()
	old.UID = "uid-before"
	n.request("old", old, nil, "app")
	n.request("new", pod, nil, "app")
	if got := n.ends("new"); got != succeeded {
		t.Errorf("new ended as %s", got)
	}
	if got := n.ends("old"); got != "failed "+crr.ReasonPodGone {
		t.Errorf("old ended as %s", got)
	}
	if stops := n.stops(); len(stops) != 1 {
		t.Errorf("%d stops, want 1", len(stops))
	}
}

// Pods do not wait for each other: one whose container ignores TERM, one whose stop hangs, a hundred others.
func TestPodsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	stubborn := n.pod("stubborn", fakecri.Container{Name: "app", Program: fakecri.Program{IgnoreTerm: true}})
	n.request("stubborn", stubborn, nil, "app")
	n.eventually("the stubborn one is being stopped", func() bool { return len(n.stops()) == 1 })
	for i := range 100 {
		name := fmt.Sprintf("web-%d", i)
		n.request(name, n.pod(name, app()), nil, "app")
	}
	for i := range 100 {
		if got := n.ends(fmt.Sprintf("web-%d", i)); got != succeeded {
			t.Errorf("request %d ended as %s", i, got)
		}
	}
	if crr.Completed(n.current("stubborn")) {
		t.Error("the stubborn one has ended: it held nothing up, or the grace was not given")
	}
}

// kill -9 while a container is being stopped: the next daemon stops the same instance, once, and ends the request.
func TestDaemonDiesDuringAStop(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("web", fakecri.Container{Name: "app", Program: fakecri.Program{TermDelay: 300 * time.Millisecond}})
	n.request("again", pod, nil, "app")
	n.eventually("the stop is under way", func() bool { return len(n.stops()) == 1 })
	n.stop()
	n.startDaemon()
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
	ids := map[string]bool{}
	for _, stop := range n.stops() {
		ids[stop.ContainerID] = true
	}
	if len(ids) != 1 {
		t.Errorf("%d different instances were stopped", len(ids))
	}
	if instances := n.runtime.Instances(); len(instances) != 2 {
		t.Errorf("%d instances, want the old and the new: %+v", len(instances), instances)
	}
}

// kill -9 after the record and before the stop.
func TestDaemonDiesBeforeTheStop(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.stop()
	pod := n.pod("web", app())
	n.request("again", pod, func(r *crr.Request) { r.Status.Phase = "Recreating" }, "app")
	n.startDaemon()
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
}

func TestRuntimeIsDownForAWhile(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("web", app())
	n.runtime.Down()
	n.request("again", pod, nil, "app")
	n.eventually("the request says so", func() bool {
		return strings.Contains(n.current("again").Status.Message, "containers cannot be seen")
	})
	if err := n.runtime.Up(); err != nil {
		t.Fatal(err)
	}
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
	if message := n.current("again").Status.Message; message != "" {
		t.Errorf("message of a success: %q", message)
	}
}

func TestStopFails(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.runtime.SetFault("StopContainer", fakecri.Fault{Code: codes.Internal, Message: "shim says no", Times: 2})
	n.request("again", n.pod("web", app()), nil, "app")
	n.eventually("the failure is told", func() bool {
		states := n.current("again").Status.ContainerRecreateStates
		return len(states) == 1 && strings.Contains(states[0].Message, "shim says no")
	})
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
}

// Without the record nothing is stopped.
func TestNothingIsStoppedWhileTheAPIServerIsAway(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.fails(errors.New("connection refused"))
	n.request("again", n.pod("web", app()), nil, "app")
	n.eventually("the containers have been looked at", func() bool { return len(n.runtime.Calls("ContainerStatus")) > 1 })
	if stops := n.stops(); len(stops) != 0 {
		t.Fatalf("%d stops", len(stops))
	}
	n.fails(nil)
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
}

// The runtime knows a static pod by the UID of its file, not by the UID of its mirror pod.
func TestStaticPod(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("kube-proxy", app()).DeepCopy()
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash", kubelet.AnnotationConfigHash: string(pod.UID)}
	pod.UID = "uid-of-the-mirror"
	n.putPod(pod)
	n.request("again", pod, nil, "app")
	n.eventually("the container is stopped", func() bool { return len(n.stops()) == 1 })
}

// A tenant cannot borrow another pod's UID by the annotations of a static pod.
func TestForgedStaticPod(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	victim := n.pod("victim", app())
	sandbox := n.runtime.RunPod(identity.Pod{Namespace: "shop", Name: "forger", UID: "uid-forger"}, "127.0.0.1")
	n.runtime.RunContainer(sandbox, app())
	forger := victim.DeepCopy()
	forger.Name, forger.UID = "forger", types.UID("uid-forger")
	forger.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x", kubelet.AnnotationConfigHash: string(victim.UID)}
	n.putPod(forger)
	n.request("steal", forger, nil, "app")
	n.eventually("it has been looked at", func() bool { return len(n.runtime.Calls("ListContainers")) > 2 })
	if stops := n.stops(); len(stops) != 0 {
		t.Errorf("stopped %s of another pod", stops[0].ContainerID)
	}
}

func TestBackoffIsSkippedAndReported(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.runtime.ActAsKubelet(fakecri.Kubelet{OnStart: n.started, Delay: func(exited int) time.Duration {
		if exited > 0 {
			return time.Hour // crash back-off
		}
		return 50 * time.Millisecond
	}})
	pod := n.pod("web", fakecri.Container{Name: "app", RestartCount: 3})
	n.request("again", pod, nil, "app")
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
	if removed := n.runtime.Calls("RemoveContainer"); len(removed) != 1 {
		t.Errorf("%d instances removed, want 1", len(removed))
	}
	if events := strings.Join(n.eventTexts(), "\n"); !strings.Contains(events, "RestartBackoffSkipped") || !strings.Contains(events, "logs --previous") {
		t.Errorf("the cost is not told: %s", events)
	}
}

func TestRequestOfAPodThatIsGone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod("web", app())
	n.fails(errors.New("connection refused"))
	n.request("again", pod, nil, "app")
	n.deletePod("web")
	n.fails(nil)
	if got := n.ends("again"); got != "failed "+crr.ReasonPodGone {
		t.Errorf("ended as %s", got)
	}
}

// fails makes every write of a status fail.
func (n *node) fails(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = func(*crr.Request) error { return err }
}
