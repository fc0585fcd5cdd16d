package node

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/engine"
	"github.com/refit-project/refit/crr/node/report"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/test/kit/fakecri"
)

// hooked restarts app of a pod with this hook and grace, and returns the node.
func hooked(t *testing.T, handler corev1.LifecycleHandler, grace int64, change func(*crr.Request)) *node {
	t.Helper()
	n := newNode(t)
	n.runtime.Commands["note stop"] = fakecri.Command{}
	n.runtime.Commands["never ends"] = fakecri.Command{Takes: time.Hour}
	pod := n.newPod("web", app())
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &handler}
	n.putPod(pod)
	n.request("again", pod, func(r *crr.Request) {
		r.Spec.Strategy.TerminationGracePeriodSeconds = &grace
		if change != nil {
			change(r)
		}
	}, "app")
	if got := n.ends("again"); got != succeeded {
		t.Fatalf("ended as %s: %s", got, n.current("again").Status.Message)
	}
	return n
}

func (n *node) warned() bool {
	return strings.Contains(strings.Join(n.eventTexts(), "\n"), "FailedPreStopHook")
}

func command(words ...string) corev1.LifecycleHandler {
	return corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: words}}
}

func TestPreStopExec(t *testing.T) {
	t.Parallel()
	n := hooked(t, command("note", "stop"), 5, nil)
	if execs := n.runtime.Calls("ExecSync"); len(execs) != 1 || execs[0].At.After(n.stops()[0].At) {
		t.Errorf("execs %+v, stops %+v", execs, n.stops())
	}
	if n.warned() {
		t.Errorf("events %q", n.eventTexts())
	}
}

// Who may create requests, where admission is switched off, may not thereby execute commands in containers.
func TestPreStopOfTheRequestIsNotExecuted(t *testing.T) {
	t.Parallel()
	n := hooked(t, corev1.LifecycleHandler{Sleep: &corev1.SleepAction{}}, 5, func(r *crr.Request) {
		r.Spec.Containers[0].PreStop = &v1beta1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"note", "stop"}}}
	})
	if execs := n.runtime.Calls("ExecSync"); len(execs) != 0 {
		t.Errorf("executed %+v", execs)
	}
}

func TestPreStopExecIsBoundedByTheGracePeriod(t *testing.T) {
	t.Parallel()
	n := hooked(t, command("never", "ends"), 1, nil)
	if !n.warned() {
		t.Errorf("no Event for a hook that was cut off: %q", n.eventTexts())
	}
	if left := n.stops()[0].Timeout; left != kubelet.MinGracePeriod {
		t.Errorf("%v left for the container, want %v", left, kubelet.MinGracePeriod)
	}
}

func TestGraceZeroMeansNow(t *testing.T) {
	t.Parallel()
	n := hooked(t, command("never", "ends"), 0, nil)
	if execs := n.runtime.Calls("ExecSync"); len(execs) != 0 {
		t.Errorf("the hook was run: %+v", execs)
	}
	if grace := n.stops()[0].Timeout; grace != 0 {
		t.Errorf("grace %v", grace)
	}
}

func TestPreStopSleepIsPartOfTheGracePeriod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ sleep, grace, left, took time.Duration }{
		"shorter":          {sleep: time.Second, grace: 4 * time.Second, left: 3 * time.Second, took: time.Second},
		"the whole period": {sleep: 4 * time.Second, grace: 4 * time.Second, left: kubelet.MinGracePeriod, took: 4 * time.Second},
		"longer":           {sleep: time.Minute, grace: 4 * time.Second, left: kubelet.MinGracePeriod, took: 4 * time.Second},
		"no grace period":  {sleep: time.Minute, left: 0, took: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stopper := &stopper{}
				began := time.Now()
				done := actorOn(t, stopper).Act(t.Context(), stopOf(crr.Stop{
					Container: "app", Grace: test.grace,
					PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: int64(test.sleep.Seconds())}},
				}))
				if took := stopper.at.Sub(began); done.Err != nil || stopper.grace != test.left || took != test.took {
					t.Errorf("%v, %v left after %v; want %v after %v", done.Err, stopper.grace, took, test.left, test.took)
				}
			})
		})
	}
}

// stopper notes when a container is stopped, with which grace period.
type stopper struct {
	Runtime
	grace time.Duration
	at    time.Time
	ended bool  // the container has
	err   error // of looking at it
}

func (s *stopper) StopContainer(_ context.Context, _ string, grace time.Duration) error {
	s.grace, s.at = grace, time.Now()
	return nil
}

func (s *stopper) ContainerStatus(context.Context, string) (cri.ContainerStatus, error) {
	state := identity.StateRunning
	if s.ended {
		state = identity.StateExited
	}
	return cri.ContainerStatus{Container: cri.Container{State: state}}, s.err
}

// The hook is for the instance that is to be stopped: it is left out if that has ended, and waits for a runtime that says so.
func TestPreStopHookOfAnInstanceThatMayHaveEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		runtime stopper
		took    time.Duration
		stopped bool
	}{
		"it runs":                     {stopper{}, time.Second, true},
		"it has ended":                {stopper{ended: true}, 0, true},
		"it was removed":              {stopper{err: cri.ErrNotFound}, 0, true},
		"the runtime does not answer": {stopper{err: cri.ErrUnavailable}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				done := actorOn(t, &test.runtime).Act(t.Context(), stopOf(crr.Stop{
					Container: "app", Grace: 10 * time.Second, PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}},
				}))
				if took := time.Since(began); took != test.took || !test.runtime.at.IsZero() != test.stopped {
					t.Errorf("stopped %t after %s", !test.runtime.at.IsZero(), took)
				}
				if test.stopped {
					if done.Err != nil || test.runtime.grace != 10*time.Second-test.took {
						t.Errorf("%v, %s left", done.Err, test.runtime.grace)
					}
				} else if done.Err == nil || !done.Transient || !done.Unbegun || !strings.HasPrefix(done.Err.Error(), "look at container app: ") {
					t.Errorf("%+v", done)
				}
			})
		})
	}
}

type noEvents struct{}

func (noEvents) Event(corev1.ObjectReference, string, string, string) {}

// configOf is the configuration of a worker that does not run.
func configOf(runtime Runtime) Config {
	informer := func(of apiruntime.Object) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(&cache.ListWatch{}, of, 0, cache.Indexers{})
	}
	return Config{
		Node: "node-1", RuntimeName: fakecri.Name, Runtime: runtime, Requests: informer(&crr.Request{}), Pods: informer(&corev1.Pod{}), MaxConcurrent: 1,
		Hooks: NewHooks(runtime), ClockOffset: func() time.Duration { return 0 }, Events: noEvents{}, Registry: prometheus.NewRegistry(),
		Tracer: noop.NewTracerProvider().Tracer(""), Logger: slog.New(slog.DiscardHandler),
	}
}

func actorOn(t *testing.T, runtime Runtime) *actor {
	t.Helper()
	config := configOf(runtime)
	return newActor(config, report.New(report.Config{
		Node: config.Node, Events: config.Events, Registry: config.Registry, Tracer: config.Tracer, ClockOffset: config.ClockOffset,
	}))
}

// stopOf is the stop of a container for a request that is wanted.
func stopOf(stop crr.Stop) engine.Action {
	request := &crr.Request{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "again", UID: "uid-again"}}
	return engine.Action{Request: request, Pod: &corev1.Pod{}, Stop: &stop, Wanted: func() error { return nil }}
}

// An httpGet hook goes to the IP of the pod's sandbox.
func TestPreStopHTTPGetGoesToThePod(t *testing.T) {
	t.Parallel()
	handler, asked := drainOverHTTP(t)
	n := hooked(t, handler, 5, nil)
	select {
	case got := <-asked:
		if got != "/drain" {
			t.Errorf("asked for %s", got)
		}
	default:
		t.Errorf("not asked; events %q", n.eventTexts())
	}
}

// By then the address belongs to the next instance, which nobody stops.
func TestPreStopHTTPGetDoesNotReachTheNextInstance(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(n *node) { n.maxConcurrent = 1 })
	stubborn := n.pod("stubborn", fakecri.Container{Name: "app", Program: fakecri.Program{IgnoreTerm: true}})
	n.request("stubborn", stubborn, func(r *crr.Request) { r.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(3)) }, "app")
	n.eventually("the only slot is taken", func() bool { return len(n.stops()) == 1 })
	handler, asked := drainOverHTTP(t)
	pod := n.newPod("web", app())
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &handler}
	n.putPod(pod)
	n.request("waits", pod, func(r *crr.Request) { r.Spec.Strategy.MinStartedSeconds = 4 }, "app") // has not ended when it gets the slot
	n.eventually("the stop waits for its slot", func() bool { return n.underWay() == 2 })
	id, err := identity.ParseContainerID(pod.Status.ContainerStatuses[0].ContainerID)
	if err != nil {
		t.Fatal(err)
	}
	n.runtime.Exit(id.ID, 1)
	if got := n.ends("waits"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
	n.eventually("nothing is under way", func() bool { return n.underWay() == 0 })
	select {
	case <-asked:
		t.Error("the hook was sent to the instance that goes on")
	default:
	}
}

// drainOverHTTP is a hook and what is asked of the server that it goes to.
func drainOverHTTP(t *testing.T) (corev1.LifecycleHandler, <-chan string) {
	t.Helper()
	asked := make(chan string, 1)
	pod := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { asked <- request.RequestURI }))
	t.Cleanup(pod.Close)
	parsed, err := url.Parse(pod.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(parsed.Port())
	if err != nil {
		t.Fatal(err)
	}
	return corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/drain", Port: intstr.FromInt(port)}}, asked
}
