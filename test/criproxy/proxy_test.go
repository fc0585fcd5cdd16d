package criproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/criproxy"
	"github.com/refit-project/refit/test/kit/fakecri"
	"github.com/refit-project/refit/test/kit/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// callTimeout is long enough for a busy machine; only calls that hang last so long.
const callTimeout = 3 * time.Second

type setup struct {
	runtime *fakecri.Runtime
	seen    *witness
	client  *cri.Client
	id      string
	config  criproxy.Config
	stop    func()
}

func start(t *testing.T) *setup {
	t.Helper()
	//nolint:usetesting // t.TempDir may pass the 108 bytes of a socket address
	dir, err := os.MkdirTemp("", "criproxy")
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{runtime: fakecri.Start(t), seen: &witness{}}
	s.runtime.Commands["true"] = fakecri.Command{}
	s.id = s.runtime.RunContainer(s.runtime.RunPod(identity.Pod{UID: "uid-0"}, ""), fakecri.Container{Name: "app"})
	s.config = criproxy.Config{
		Listen: filepath.Join(dir, "proxy.sock"), Runtime: strings.TrimPrefix(s.runtime.Endpoint(), "unix://"),
		Record: filepath.Join(dir, "calls.jsonl"), Faults: filepath.Join(dir, "faults.json"), Interceptor: s.seen,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- criproxy.Run(ctx, s.config) }()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run() = %v", err)
		}
		s.stop = func() {}
	}
	s.client, err = cri.New(cri.Config{Endpoint: s.config.Listen, CallTimeout: callTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop()
		if err := errors.Join(s.client.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	poll.Until(t, "proxy to answer", func() bool {
		_, err := s.client.Version(t.Context())
		return err == nil
	})
	return s
}

func (s *setup) faults(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(s.config.Faults, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readRecord reads what a proxy has written so far. A last line that is not complete is left out.
func readRecord(name string) ([]criproxy.Line, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	var lines []criproxy.Line
	for text := range strings.Lines(string(b)) {
		if !strings.HasSuffix(text, "\n") {
			break
		}
		var l criproxy.Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return nil, fmt.Errorf("read record line %d: %w", len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func TestRecord(t *testing.T) {
	t.Parallel()
	s := start(t)
	begin := time.Now()
	if _, err := s.client.ExecSync(t.Context(), s.id, []string{"true"}, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := s.client.StopContainer(t.Context(), s.id, 7*time.Second); err != nil {
		t.Fatal(err)
	}
	missing := strings.Repeat("0", 64)
	if _, err := s.client.ContainerStatus(t.Context(), missing); !errors.Is(err, cri.ErrNotFound) {
		t.Errorf("ContainerStatus = %v, want the runtime's ErrNotFound", err)
	}
	s.stop()
	lines, err := readRecord(s.config.Record)
	if err != nil {
		t.Fatal(err)
	}
	lines = slices.DeleteFunc(lines, func(l criproxy.Line) bool { return l.Method == "Version" })
	if len(lines) != 3 {
		t.Fatalf("record %+v, want three calls beside the Versions", lines)
	}
	exec, stop, status := lines[0], lines[1], lines[2]
	if exec.Method != "ExecSync" || exec.ContainerID != s.id || !slices.Equal(exec.Command, []string{"true"}) || *exec.Timeout != 3 {
		t.Errorf("recorded %+v", exec)
	}
	if stop.Method != "StopContainer" || stop.ContainerID != s.id || *stop.Timeout != 7 || stop.Code != "OK" || stop.DurationMS <= 0 {
		t.Errorf("recorded %+v", stop)
	}
	if status.ContainerID != missing || status.Code != "NotFound" || status.Error == "" || status.Timeout != nil {
		t.Errorf("recorded %+v", status)
	}
	if !strings.Contains(stop.Caller, "comm=criproxy.test") || !strings.Contains(stop.Caller, "grpc-go") {
		t.Errorf("caller %q, want the name of this process and its user agent", stop.Caller)
	}
	if stop.Time.Before(begin) || stop.Time.After(time.Now()) {
		t.Errorf("time %s, want the begin of the call", stop.Time)
	}
}

// witness writes down what it is told, and empties the answers to calls of one method.
type witness struct {
	mu    sync.Mutex
	empty string
	told  []string
}

func (w *witness) Came(call criproxy.Line) { w.tell("came", call) }

func (w *witness) Answered(call criproxy.Line, answer []byte) []byte {
	w.tell("answered", call)
	w.mu.Lock()
	defer w.mu.Unlock()
	if call.Method == w.empty {
		return nil
	}
	return answer
}

func (w *witness) tell(what string, call criproxy.Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if call.Method != "Version" {
		w.told = append(w.told, what+" "+call.Method+" "+call.ContainerID)
	}
}

func TestInterceptor(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.seen.mu.Lock()
	s.seen.empty = "ListContainers"
	s.seen.mu.Unlock()
	if list, err := s.client.ListContainers(t.Context(), "uid-0"); err != nil || len(list) != 0 {
		t.Errorf("list = %v, %v; want the answer as the interceptor left it", list, err)
	}
	s.faults(t, `{"StopContainer": {"code": "Unavailable"}}`)
	if err := s.client.StopContainer(t.Context(), s.id, 0); err == nil {
		t.Error("stop was not refused")
	}
	s.stop()
	want := []string{"came ListContainers ", "answered ListContainers ", "came StopContainer " + s.id}
	if !slices.Equal(s.seen.told, want) {
		t.Errorf("told %q, want %q", s.seen.told, want)
	}
}

func TestDroppedEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.faults(t, `{"GetContainerEvents": {"drop": true, "count": 1}}`)
	ctx, cancel := context.WithCancel(t.Context())
	events, ended := make(chan cri.Event, 10), make(chan error)
	go func() { ended <- s.client.Events(ctx, func(e cri.Event) { events <- e }) }()
	if e := <-events; !e.Relist {
		t.Errorf("first event %+v, want a relist", e)
	}
	poll.Until(t, "subscription", func() bool { return s.runtime.Subscribers() == 1 })
	s.runtime.Exit(s.id, 1)
	if err := s.client.RemoveContainer(t.Context(), s.id); err != nil {
		t.Error(err)
	}
	if e := <-events; e.Type != cri.EventDeleted {
		t.Errorf("first event after the dropped one %+v, want the removal", e)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Events() = %v", err)
	}
}
