package requests

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/testkit/fakecri"
)

// hooked restarts app of a pod with this hook and grace, and returns the node.
func hooked(t *testing.T, hook crr.PreStop, grace int64, change func(*crr.Request)) *node {
	t.Helper()
	n := newNode(t)
	n.runtime.Commands["note stop"] = fakecri.Command{}
	n.runtime.Commands["never ends"] = fakecri.Command{Takes: time.Hour}
	n.request("again", n.pod("web", app()), func(r *crr.Request) {
		r.Spec.Containers[0].PreStop = &hook
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

func TestPreStopExec(t *testing.T) {
	t.Parallel()
	n := hooked(t, crr.PreStop{Exec: &corev1.ExecAction{Command: []string{"note", "stop"}}}, 5, nil)
	if execs := n.runtime.Calls("ExecSync"); len(execs) != 1 || execs[0].At.After(n.stops()[0].At) {
		t.Errorf("execs %+v, stops %+v", execs, n.stops())
	}
	if n.warned() {
		t.Errorf("events %q", n.told())
	}
}

func TestPreStopExecIsBoundedByTheGracePeriod(t *testing.T) {
	t.Parallel()
	n := hooked(t, crr.PreStop{Exec: &corev1.ExecAction{Command: []string{"never", "ends"}}}, 1, nil)
	if !n.warned() {
		t.Errorf("a hook that was cut off is not told: %q", n.told())
	}
	if left := n.stops()[0].Timeout; left != minGrace {
		t.Errorf("%v left for the container, want %v", left, minGrace)
	}
}

func TestGraceZeroMeansNow(t *testing.T) {
	t.Parallel()
	n := hooked(t, crr.PreStop{Exec: &corev1.ExecAction{Command: []string{"never", "ends"}}}, 0, nil)
	if execs := n.runtime.Calls("ExecSync"); len(execs) != 0 {
		t.Errorf("the hook was run: %+v", execs)
	}
	if grace := n.stops()[0].Timeout; grace != 0 {
		t.Errorf("grace %v", grace)
	}
}

func TestPreStopSleep(t *testing.T) {
	t.Parallel()
	n := hooked(t, crr.PreStop{Sleep: &corev1.SleepAction{Seconds: 1}}, 4, nil)
	if grace := n.stops()[0].Timeout; grace != 3*time.Second {
		t.Errorf("%v left of 4 s after a sleep of 1 s", grace)
	}
}

// An httpGet hook without host goes to the pod's IP, by port number or name, and follows no redirect.
func TestPreStopHTTPGetGoesToThePod(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	var asked atomic.Pointer[http.Request]
	pod := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		asked.Store(request)
		http.Redirect(out, request, elsewhere.URL, http.StatusFound)
	}))
	t.Cleanup(pod.Close)
	port := portOf(t, pod.URL)
	hook := crr.PreStop{HTTPGet: &corev1.HTTPGetAction{
		Path: "/drain?now=1", Port: intstr.FromString("web"), HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Hook", Value: "yes"}},
	}}
	n := hooked(t, hook, 5, func(r *crr.Request) {
		r.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: port}}
	})
	got := asked.Load()
	if got == nil || got.URL.String() != "/drain?now=1" || got.Header.Get("X-Hook") != "yes" {
		t.Errorf("asked %+v; events %q", got, n.told())
	}
}

func TestHookPort(t *testing.T) {
	t.Parallel()
	request := &crr.Request{}
	request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{
		Name: "app", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
	}}
	for name, tt := range map[string]struct {
		port intstr.IntOrString
		want int // 0: refused
	}{
		"number":             {port: intstr.FromInt32(80), want: 80},
		"name":               {port: intstr.FromString("web"), want: 8080},
		"number in a string": {port: intstr.FromString("81"), want: 81},
		"unknown name":       {port: intstr.FromString("admin")},
		"zero":               {port: intstr.FromInt32(0)},
		"too large":          {port: intstr.FromInt32(65536)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := hookPort(tt.port, request, "app")
			if got != tt.want || (err != nil) != (tt.want == 0) {
				t.Errorf("hookPort = %d, %v; want %d", got, err, tt.want)
			}
		})
	}
}

func TestPreStopHTTPGetRefusesOtherHosts(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the daemon was steered to another host") }))
	t.Cleanup(elsewhere.Close)
	n := hooked(t, crr.PreStop{HTTPGet: &corev1.HTTPGetAction{Host: "localhost", Path: "/", Port: intstr.FromInt32(portOf(t, elsewhere.URL))}}, 5, nil)
	if !n.warned() {
		t.Errorf("events %q", n.told())
	}
}

func portOf(t *testing.T, address string) int32 {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(parsed.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(port)
}
