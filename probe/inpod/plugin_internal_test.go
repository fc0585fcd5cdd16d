package inpod

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ownPod = identity.Pod{Namespace: "games", Name: "gs-0", UID: "u"}

// world is the pod as it is seen, and the conditions that are wanted.
type world struct {
	mu         sync.Mutex
	pod        *corev1.Pod
	changes    chan struct{}
	conditions map[string]string
	dropped    []string
}

func (w *world) Put(_ string, outputs []output.Output, e result.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if gone, ok := outputs[0].(output.NoCondition); ok && gone.Reason == Reason {
		w.conditions[gone.Type] = "removed"
		return
	}
	c, ok := outputs[0].(output.Condition)
	if !ok || len(outputs) != 1 || c.Object.Name != "gs-0" {
		w.conditions["wrong output"] = fmt.Sprint(outputs)
		return
	}
	w.conditions[c.Type] = string(e.State) + " " + e.Message
}
func (w *world) Drop(source string)                  { w.dropped = append(w.dropped, source) }
func (w *world) Flush(context.Context, string) error { return nil }

func (w *world) change(change func(*corev1.Pod)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := w.pod.DeepCopy()
	change(next)
	w.pod = next
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

func (w *world) await(t *testing.T, condition, want string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		w.mu.Lock()
		got := w.conditions[condition]
		w.mu.Unlock()
		if strings.HasPrefix(got, want) {
			return
		}
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("condition %s is %q, want %q", condition, got, want)
		}
	}
}

func runningSince(name string, since time.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}}
}

// The protocol of serverless PodProbeMarker: the annotation's probes become conditions, with kruise-daemon's words.
func TestAnnotationBecomesConditions(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	answer := "idle"
	app := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if answer == "" {
			rw.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(rw, answer)
	}))
	defer app.Close()
	port := app.URL[strings.LastIndex(app.URL, ":")+1:]
	w := &world{changes: make(chan struct{}, 1), conditions: map[string]string{}}
	w.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "side"}, {Name: "late"}}},
		Status: corev1.PodStatus{PodIP: "127.0.0.1", ContainerStatuses: []corev1.ContainerStatus{
			runningSince("app", time.Now()), runningSince("side", time.Now()), {Name: "late", RestartCount: 1}}},
	}
	w.pod.Annotations[Annotation] = `[
		{"name":"http","containerName":"app","podConditionType":"game.kruise.io/idle","probe":{"httpGet":{"port":` + port + `,"path":"/","scheme":"HTTP"}}},
		{"name":"own","containerName":"side","podConditionType":"own","probe":{"exec":{"command":["/usr/bin/echo","hello"]}}},
		{"name":"other","containerName":"app","podConditionType":"other","probe":{"exec":{"command":["true"]}}},
		{"name":"late","containerName":"late","podConditionType":"late","probe":{"tcpSocket":{"port":` + port + `}}},
		{"name":"nowhere","containerName":"none","podConditionType":"nowhere","probe":{"tcpSocket":{"port":1}}},
		{"name":"native","containerName":"app","podConditionType":"Ready","probe":{"tcpSocket":{"port":1}}}]`
	p := New()
	host := plugin.Host{
		Logger: slog.New(slog.DiscardHandler), Pod: ownPod, Own: "side", Results: w, API: &ownpod.Client{},
		Observed: func() *corev1.Pod { w.mu.Lock(); defer w.mu.Unlock(); return w.pod },
		Changes:  func() (<-chan struct{}, func()) { return w.changes, func() {} },
	}
	if err := p.Init(t.Context(), p.ConfigType(), host); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()
	w.await(t, "game.kruise.io/idle", "Succeeded idle")
	w.await(t, "own", "Succeeded hello")
	w.await(t, "other", "Unknown probe: exec") // not possible here
	w.await(t, "late", "Failed Container(late) is Non-running")
	if health := p.Status(); health.Healthy || !strings.Contains(health.Message, "Ready") {
		t.Errorf("status %+v", health)
	}
	w.change(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[2] = runningSince("late", time.Now()) })
	w.await(t, "late", "Succeeded")
	mu.Lock()
	answer = ""
	mu.Unlock()
	w.await(t, "game.kruise.io/idle", "Failed status 500") // one failure counts
	w.change(func(pod *corev1.Pod) {                       // the container is another: nothing is known of it until it has been asked
		pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	})
	w.await(t, "game.kruise.io/idle", "Failed Container(app) is Non-running")
	mu.Lock()
	answer = "back"
	mu.Unlock()
	w.change(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0] = runningSince("app", time.Now()) })
	w.await(t, "game.kruise.io/idle", "Succeeded back")
	w.change(func(pod *corev1.Pod) { pod.Annotations = nil })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, condition := range []string{"Ready", "nowhere", "wrong output"} {
		if said, ok := w.conditions[condition]; ok {
			t.Errorf("condition %s: %s", condition, said)
		}
	}
}

// Conditions are removed with their probe, whichever sidecar of the pod has written them; conditions of others stay.
func TestConditionsGoWithTheirProbe(t *testing.T) {
	t.Parallel()
	w := &world{changes: make(chan struct{}, 1), conditions: map[string]string{}}
	p := &Plugin{host: plugin.Host{Logger: slog.New(slog.DiscardHandler), Pod: ownPod, Results: w}, latest: map[string]probe.Result{}}
	at := map[string]*activeProbe{}
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", ContainerID: "x://1"}}, Conditions: []corev1.PodCondition{
		{Type: "of-an-earlier-sidecar", Reason: Reason}, {Type: "probed", Reason: Reason}, {Type: "of-another"}, {Type: "Ready"},
	}}}
	for _, step := range []struct {
		name, probes string
		gone         string // condition that is not in the pod any more
		want         map[string]string
		dropped      []string
	}{
		{"one probe", `[{"name":"a","containerName":"app","podConditionType":"probed","probe":{"tcpSocket":{"port":1}}}]`, "",
			map[string]string{"of-an-earlier-sidecar": "removed", "probed": "Failed Container(app) is Non-running"}, nil},
		{"no probe", "", "of-an-earlier-sidecar", map[string]string{"probed": "removed"}, []string{"pod_probe/probed", "pod_probe/of-an-earlier-sidecar"}},
		{"the probe again", `[{"name":"a","containerName":"app","podConditionType":"probed","probe":{"tcpSocket":{"port":1}}}]`, "",
			map[string]string{"probed": "Failed Container(app) is Non-running"}, nil},
		{"what is not JSON", "x", "", map[string]string{"probed": "removed"}, []string{"pod_probe/probed"}},
		{"removed", "", "probed", map[string]string{}, []string{"pod_probe/probed"}},
	} {
		w.conditions, w.dropped = map[string]string{}, nil
		pod.Annotations = map[string]string{Annotation: step.probes}
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return string(c.Type) == step.gone })
		p.reconcile(t.Context(), pod, at)
		if diff := cmp.Diff(step.want, w.conditions); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.dropped, w.dropped); diff != "" {
			t.Errorf("%s: dropped (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestDefaultsAreKruiseDaemons(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	w := wanted{ContainerName: "app"}
	if err := json.Unmarshal([]byte(`{"tcpSocket":{"port":80}}`), &w.Probe); err != nil {
		t.Fatal(err)
	}
	spec, err := w.spec(pod, "")
	if err != nil {
		t.Fatal(err)
	}
	want := probe.Timing{Period: time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 1, Jitter: time.Second}
	if diff := cmp.Diff(want, spec.Timing); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := w.spec(&corev1.Pod{}, ""); err == nil {
		t.Error("no IP is no error")
	}
	p := New()
	if err := p.Init(t.Context(), p.ConfigType(), plugin.Host{}); err == nil {
		t.Error("without an API server there is nothing to do")
	}
}

// A marker names ports as the container does, and the container may be a native sidecar.
func TestPortsAreNamedByEveryContainerThatKeepsRunning(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}}}
	pod.Spec.InitContainers = []corev1.Container{{Name: "proxy", Ports: []corev1.ContainerPort{{Name: "admin", ContainerPort: 15000}}}}
	for container, port := range map[string]string{"app": "http", "proxy": "admin"} {
		w := wanted{ContainerName: container}
		if err := json.Unmarshal([]byte(`{"tcpSocket":{"port":"`+port+`"}}`), &w.Probe); err != nil {
			t.Fatal(err)
		}
		if _, err := w.spec(pod, ""); err != nil {
			t.Errorf("container %s: %v", container, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`[{"name":"a","containerName":"c","podConditionType":"t","probe":{"tcpSocket":{"port":"x"}}}]`)
	f.Add(`[{}, {}]`)
	f.Fuzz(func(t *testing.T, text string) {
		probes, _ := parse(text, ownPod)
		if len(probes) > maxProbes {
			t.Errorf("%d probes", len(probes))
		}
		pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: "127.0.0.1"}}
		for _, w := range probes {
			if (output.Condition{Object: output.Pod(ownPod), Type: w.PodConditionType}).Validate() != nil {
				t.Errorf("condition %q", w.PodConditionType)
			}
			_, _ = w.spec(pod, "c")
		}
	})
}
