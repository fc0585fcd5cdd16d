package sidecarmode

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/plugin/selftest"
)

// values returns the values of counters and gauges of the program, by name and labels.
func values(t *testing.T, s *state) map[string]float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return all
}

// A file that cannot be used leaves the one before in force, and that is what is told.
func TestConfigurationInForceIsToldBesideTheFaultOfTheFile(t *testing.T) {
	t.Parallel()
	s := newState("v1", newMeter())
	const successful, loaded = "refit_sidecar_config_last_reload_successful", "refit_sidecar_config_last_reload_success_timestamp_seconds"
	first, second := time.Unix(1000, 0), time.Unix(2000, 0)
	for _, step := range []struct {
		name       string
		set, want  configState
		successful float64
		loaded     float64
	}{
		{"loaded", configState{File: "f", Digest: "1", Loaded: first, Later: []string{"health"}}, configState{File: "f", Digest: "1", Loaded: first, Later: []string{"health"}}, 1, 1000},
		{"at fault", configState{File: "f", Digest: "2", Loaded: second, Error: "no"}, configState{File: "f", Digest: "1", Loaded: first, Later: []string{"health"}, Error: "no"}, 0, 1000},
		{"mended", configState{File: "f", Digest: "3", Loaded: second}, configState{File: "f", Digest: "3", Loaded: second}, 1, 2000},
	} {
		s.setConfig(step.set)
		if diff := cmp.Diff(step.want, s.config); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if got := values(t, s); got[successful] != step.successful || got[loaded] != step.loaded {
			t.Errorf("%s: successful %v, loaded %v", step.name, got[successful], got[loaded])
		}
	}
}

func TestSelfTestAndWritesAreMetrics(t *testing.T) {
	t.Parallel()
	s := newState("v1", newMeter())
	s.setReport(selftest.Report{{Name: "gone", OK: true}})
	s.setReport(selftest.Report{{Name: "a", OK: true, Needed: true}, {Name: "b"}})
	pods := output.Pod(identity.Pod{Namespace: "games", Name: "gs-0"})
	s.observe(pods, result.Requests{}, nil)
	for range 2 {
		s.observe(pods, result.Requests{Writes: 1}, nil)
	}
	for range 3 {
		s.observe(pods, result.Requests{Writes: 1}, errors.New("no"))
	}
	got := values(t, s)
	for name, want := range map[string]float64{
		"refit_sidecar_self_test a true": 1, "refit_sidecar_self_test b false": 0, "refit_build_info refit-sidecar v1": 1,
		"refit_sidecar_result_writes_total unchanged pods": 1, "refit_sidecar_result_writes_total patched pods": 2, "refit_sidecar_result_writes_total failed pods": 3,
	} {
		if is, ok := got[name]; !ok || is != want {
			t.Errorf("%s: %v, %t", name, is, ok)
		}
	}
	if _, ok := got["refit_sidecar_self_test gone false"]; ok {
		t.Error("a check that is not made any more is still a metric")
	}
}

// A result that is removed is no metric any more.
func TestGaugesOfResultsComeAndGo(t *testing.T) {
	t.Parallel()
	m := newMeter()
	s := newState("v1", m)
	m.Set("players", 3)
	m.Set("rooms", 1)
	m.Clear("rooms")
	got := values(t, s)
	if _, rooms := got["rooms"]; rooms || got["players"] != 3 {
		t.Errorf("%v", got)
	}
}

// Only the start reads these: who changes one is told that it waits for a restart.
func TestKeysThatWaitForARestart(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*config.File){
		"":                  func(f *config.File) { f.RestartPolicy, f.Resources = "Never", map[string]string{"cpu": "1"} },
		"server":            func(f *config.File) { f.Server.TokenFile = "t" },
		"health":            func(f *config.File) { f.Health = "off" },
		"selfTestCondition": func(f *config.File) { f.SelfTestCondition = "off" },
		"procRoot":          func(f *config.File) { f.ProcRoot = "/host/proc" },
		"server,procRoot":   func(f *config.File) { f.Server.TLS.CertFile, f.ProcRoot = "c", "/host/proc" },
	} {
		first, now := &config.File{}, &config.File{}
		change(now)
		if got := strings.Join(startOnly(first, now), ","); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The limits are of the whole process.
func TestResourcesBoundTheProcess(t *testing.T) { //nolint:paralleltest // others would run within the limits
	processors, memory := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1)
	t.Cleanup(func() { runtime.GOMAXPROCS(processors); debug.SetMemoryLimit(memory) })
	s := &sidecar{}
	for cpu, want := range map[string]int{"100m": 1, "1": 1, "1500m": 2, "2": 2} {
		s.applyResourceLimits(&config.File{Resources: map[string]string{"CPU": cpu, "Memory": "1000"}})
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("CPU %s: %d processors, want %d", cpu, got, want)
		}
		if got := debug.SetMemoryLimit(memory); got != 800 {
			t.Errorf("%d bytes of 1000 for the heap", got)
		}
	}
	s.applyResourceLimits(&config.File{})
	if got := debug.SetMemoryLimit(-1); got != memory {
		t.Errorf("without a limit: %d", got)
	}
}

// answering is an API server that answers with one code, and passes on Events.
func answering(t *testing.T, code int, events chan<- corev1.Event) *ownpod.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event corev1.Event
		if err := json.NewDecoder(r.Body).Decode(&event); err == nil && events != nil {
			events <- event
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"metadata":{"name":"gs-0","namespace":"games","uid":"u"}}`))
	}))
	t.Cleanup(s.Close)
	client, err := ownpod.NewClient(&rest.Config{Host: s.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestEventsOfFailuresAreWarnings(t *testing.T) {
	t.Parallel()
	pod := output.Pod(identity.Pod{Namespace: "games", Name: "gs-0", UID: "u"})
	recorder{}.Event(pod, result.Failed, "Reason", "without an API server nobody is told")
	sent := make(chan corev1.Event)
	events := ownpod.NewEvents(answering(t, http.StatusCreated, sent), component, slog.New(slog.DiscardHandler))
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		events.Run(t.Context())
	}()
	t.Cleanup(func() { <-ran })
	for state, want := range map[result.State]string{result.Succeeded: corev1.EventTypeNormal, result.Failed: corev1.EventTypeWarning, result.Unknown: corev1.EventTypeWarning} {
		recorder{events}.Event(pod, state, "Reason", "said")
		event := <-sent
		about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "games", Name: "gs-0", UID: "u"}
		if event.Type != want || event.Reason != "Reason" || event.Message != "said" || event.InvolvedObject != about {
			t.Errorf("%s: %+v", state, event)
		}
	}
}

// A role that does not allow to read the pod is no reason to wait for it, and the pod will not be read later.
func TestFirstLookAtThePod(t *testing.T) {
	t.Parallel()
	own := identity.Pod{Namespace: "games", Name: "gs-0", UID: "u"}
	for code, read := range map[int]bool{http.StatusOK: true, http.StatusForbidden: false} {
		f := newPodFeed()
		if later := f.readFirst(t.Context(), answering(t, code, nil), own, slog.New(slog.DiscardHandler)); later || (f.latest() != nil) != read {
			t.Errorf("%d: later %t, read %t", code, later, f.latest() != nil)
		}
	}
}

func TestAllOtherContainersHaveToHaveStarted(t *testing.T) {
	t.Parallel()
	for _, last := range []bool{true, false} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "refit-sidecar"}, {Name: "app"}, {Name: "db"}}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Started: new(!last)}, {Name: "db", Started: new(last)}}
		if othersStarted(pod, "refit-sidecar") {
			t.Errorf("the last has started: %t; that counts for both", last)
		}
	}
}
