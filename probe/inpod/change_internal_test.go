package inpod

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/endpoint"
	"github.com/refit-project/refit/test/kit/logbuffer"
)

// one is a probe of the annotation.
func one(name, container, condition string) string {
	return fmt.Sprintf(`{"name":%q,"containerName":%q,"podConditionType":%q,"probe":{"tcpSocket":{"port":1}}}`, name, container, condition)
}

// Whoever has written the annotation reads in the status of the plugin what is wrong with it; the other probes run.
func TestProbesThatMakeNoSenseAreLeftOutAndTold(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, one(fmt.Sprint("p", i), "app", fmt.Sprint("c", i)))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for name, tt := range map[string]struct {
		text  string
		names []string
		said  string
	}{
		"none":                            {"", nil, ""},
		"an empty list":                   {"[]", nil, ""},
		"what is not JSON":                {"x", nil, "decode annotation: "},
		"a probe without a container":     {"[" + one("a", "", "t") + "," + one("b", "app", "u") + "]", []string{"b"}, "probe a: no container"},
		"two probes of one condition":     {"[" + one("a", "app", "t") + "," + one("b", "side", "t") + "]", []string{"a"}, "probe b: condition t has a probe already"},
		"a condition that is kubelet's":   {"[" + one("a", "app", "Ready") + "," + one("b", "app", "t") + "]", []string{"b"}, "probe a: condition Ready"},
		"more than there may be, faulty":  {"[" + one("x", "", "t") + "," + many(maxProbes + 1)[1:], nil, "probe x: no container\nmore than 256 probes"},
		"as many as there may be, faulty": {"[" + one("x", "", "t") + "," + many(maxProbes)[1:], nil, "probe x: no container"},
	} {
		probes, errs := parse(tt.text, ownPod)
		said := ""
		if errs != nil {
			said = errs.Error()
		}
		if (said == "") != (tt.said == "") || !strings.HasPrefix(said, tt.said) || strings.Contains(said, "more than") != strings.Contains(tt.said, "more than") {
			t.Errorf("%s: %q, want %q", name, said, tt.said)
		}
		if strings.Contains(name, "there may be") {
			if len(probes) != maxProbes {
				t.Errorf("%s: %d probes", name, len(probes))
			}
			continue
		}
		var names []string
		for _, w := range probes {
			names = append(names, w.Name)
		}
		if diff := cmp.Diff(tt.names, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// begin is a plugin that has been initialised, and a pod with this annotation in which container side, the own one, runs.
func begin(t *testing.T, annotation string) (*Plugin, *world, *corev1.Pod, *logbuffer.Buffer) {
	t.Helper()
	w, log := &world{changes: make(chan struct{}, 1), conditions: map[string]string{}}, &logbuffer.Buffer{}
	p := &Plugin{latest: map[string]probe.Result{}, host: plugin.Host{Logger: slog.New(slog.NewTextHandler(log, nil)), Pod: ownPod, Own: "side", Results: w}}
	pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: "127.0.0.1", ContainerStatuses: []corev1.ContainerStatus{runningSince("side", time.Now())}}}
	pod.Spec.Containers = []corev1.Container{{Name: "side"}}
	pod.Annotations = map[string]string{Annotation: annotation}
	return p, w, pod, log
}

// For False a manager sets the labels and annotations of the state Failed, such as a deletion cost, on a pod that is only starting.
func TestAContainerThatHasNeverStartedHasNoResult(t *testing.T) {
	t.Parallel()
	const failed = "Failed Container(late) is Non-running"
	ended := &corev1.ContainerStateTerminated{ExitCode: 1}
	for name, tt := range map[string]struct {
		status corev1.ContainerStatus
		want   string // empty: no condition
	}{
		"waits for its first start": {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}, ""},
		"nothing is known about it": {corev1.ContainerStatus{}, ""},
		"has an instance":           {corev1.ContainerStatus{ContainerID: "x://1"}, failed},
		"has terminated":            {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended}}, failed},
		"is started again":          {corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{Terminated: ended}}, failed},
		"was restarted":             {corev1.ContainerStatus{RestartCount: 1}, failed},
	} {
		p, w, pod, _ := begin(t, "["+one("a", "late", "t")+"]")
		tt.status.Name = "late"
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, tt.status)
		p.reconcile(t.Context(), pod, map[string]*activeProbe{})
		if got := w.conditions["t"]; got != tt.want {
			t.Errorf("%s: condition %q, want %q", name, got, tt.want)
		}
	}
}

func TestAnotherProbeOfAConditionReplacesTheOneBefore(t *testing.T) {
	t.Parallel()
	echo := func(word string) string {
		return `[{"name":"a","containerName":"side","podConditionType":"t","probe":{"exec":{"command":["/usr/bin/echo","` + word + `"]}}}]`
	}
	p, w, pod, _ := begin(t, echo("one"))
	at := map[string]*activeProbe{}
	p.reconcile(t.Context(), pod, at)
	w.await(t, "t", "Succeeded one")
	if info, _ := p.Status().Info.(map[string]endpoint.Latest); info["t"].Message != "one" {
		t.Errorf("status %+v", info)
	}
	first := at["t"].worker
	p.reconcile(t.Context(), pod, at)
	if at["t"].worker != first {
		t.Error("the probe has begun anew although nothing has changed")
	}
	pod.Annotations[Annotation] = echo("two")
	p.reconcile(t.Context(), pod, at)
	w.await(t, "t", "Succeeded two")
	pod.Annotations[Annotation] = ""
	p.reconcile(t.Context(), pod, at)
	if info, _ := p.Status().Info.(map[string]endpoint.Latest); len(info) > 0 || len(at) > 0 {
		t.Errorf("after its removal: status %+v, %d probes run", info, len(at))
	}
}

// A pod gets another address when its sandbox is made again.
func TestAProbeFollowsTheAddressOfThePod(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "here") }))
	defer app.Close()
	port := app.URL[strings.LastIndex(app.URL, ":")+1:]
	p, w, pod, _ := begin(t, `[{"name":"a","containerName":"side","podConditionType":"t","probe":{"httpGet":{"port":`+port+`}}}]`)
	at := map[string]*activeProbe{}
	pod.Status.PodIP = "127.0.0.9" // where nothing listens
	p.reconcile(t.Context(), pod, at)
	w.await(t, "t", "Failed ")
	pod.Status.PodIP = "127.0.0.1"
	p.reconcile(t.Context(), pod, at)
	w.await(t, "t", "Succeeded here")
	at["t"].stop()
}

func TestAFaultIsLoggedWhenItChanges(t *testing.T) {
	t.Parallel()
	p, _, pod, log := begin(t, "["+one("a", "", "t")+"]")
	at := map[string]*activeProbe{}
	for i, annotation := range []string{pod.Annotations[Annotation], "[" + one("b", "", "t") + "]", "[]", "[" + one("b", "", "t") + "]"} {
		pod.Annotations[Annotation] = annotation
		p.reconcile(t.Context(), pod, at)
		p.reconcile(t.Context(), pod, at)
		if got, want := strings.Count(log.String(), "level=WARN"), []int{1, 2, 2, 3}[i]; got != want {
			t.Errorf("step %d: %d warnings, want %d:\n%s", i, got, want, log.String())
		}
	}
	if health := p.Status(); health.Healthy || health.Message != "probe b: no container" {
		t.Errorf("%+v", health)
	}
}

// Its removal is asked for until the pod does not have it any more.
func TestAConditionOfAnEarlierSidecarIsRemovedUntilItIsGone(t *testing.T) {
	t.Parallel()
	p, w, pod, _ := begin(t, "")
	pod.Status.Conditions = []corev1.PodCondition{{Type: "old", Reason: Reason}}
	for range 2 {
		p.reconcile(t.Context(), pod, map[string]*activeProbe{})
		if w.conditions["old"] != "removed" || len(w.dropped) > 0 {
			t.Errorf("%v, dropped %v", w.conditions, w.dropped)
		}
	}
	pod.Status.Conditions = nil
	p.reconcile(t.Context(), pod, map[string]*activeProbe{})
	if diff := cmp.Diff([]string{"pod_probe/old"}, w.dropped); diff != "" {
		t.Errorf("when it is gone (-want +got):\n%s", diff)
	}
}

func TestANegativeDelayIsNone(t *testing.T) {
	t.Parallel()
	w := wanted{ContainerName: "app"}
	w.Probe.TCPSocket, w.Probe.InitialDelaySeconds = &corev1.TCPSocketAction{}, -5
	w.Probe.TCPSocket.Port.IntVal = 80
	spec, err := w.spec(&corev1.Pod{Status: corev1.PodStatus{PodIP: "10.0.0.1"}}, "")
	if err != nil || spec.StartDelay != 0 || spec.Validate() != nil {
		t.Errorf("%+v, %v", spec.Timing, err)
	}
}

// A probe that cannot be created is reported, and is no failure of the container.
func TestAProbeThatCannotBeMadeIsUnknownAndTold(t *testing.T) {
	t.Parallel()
	p, w, pod, _ := begin(t, `[{"name":"a","containerName":"side","podConditionType":"t","probe":{"tcpSocket":{"port":"none"}}}]`)
	at := map[string]*activeProbe{}
	p.reconcile(t.Context(), pod, at)
	if health := p.Status(); health.Healthy || !strings.HasPrefix(health.Message, "probe a: ") || !strings.HasPrefix(w.conditions["t"], "Unknown ") {
		t.Errorf("%+v, condition %q", health, w.conditions["t"])
	}
	pod.Status.PodIP = ""
	p.reconcile(t.Context(), pod, at)
	if health := p.Status(); health.Message != "probe a: the pod has no IP yet" || w.conditions["t"] != "Unknown the pod has no IP yet" {
		t.Errorf("%+v, condition %q", health, w.conditions["t"])
	}
}
