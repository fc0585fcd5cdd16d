package requests

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/testkit/fakecri"
)

// hooked restarts app of a pod with this hook and grace, and returns the node.
func hooked(t *testing.T, handler corev1.LifecycleHandler, grace int64, change func(*crr.Request)) *node {
	t.Helper()
	n := newNode(t)
	n.runtime.Commands["note stop"] = fakecri.Command{}
	n.runtime.Commands["never ends"] = fakecri.Command{Takes: time.Hour}
	pod := n.pod("web", app())
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
	return strings.Contains(strings.Join(n.told(), "\n"), "FailedPreStopHook")
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
		t.Errorf("events %q", n.told())
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
		t.Errorf("no Event for a hook that was cut off: %q", n.told())
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

func TestPreStopSleep(t *testing.T) {
	t.Parallel()
	n := hooked(t, corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}, 4, nil)
	if grace := n.stops()[0].Timeout; grace != 3*time.Second {
		t.Errorf("%v left of 4 s after a sleep of 1 s", grace)
	}
}

// An httpGet hook goes to the IP of the pod's sandbox.
func TestPreStopHTTPGetGoesToThePod(t *testing.T) {
	t.Parallel()
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
	n := hooked(t, corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/drain", Port: intstr.FromInt(port)}}, 5, nil)
	select {
	case got := <-asked:
		if got != "/drain" {
			t.Errorf("asked for %s", got)
		}
	default:
		t.Errorf("not asked; events %q", n.told())
	}
}
