package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("TESTAPP_MAIN") != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

func TestRun(t *testing.T) {
	t.Parallel()
	term, usr1 := syscall.SIGTERM, syscall.SIGUSR1
	tests := map[string]struct {
		args    string
		signals []os.Signal
		want    []string
		code    int
	}{
		"term":                {signals: []os.Signal{term}, want: []string{"start", "signal SIGTERM", "exit 0 signal"}},
		"exit code":           {args: "--exit-code 3", signals: []os.Signal{term}, want: []string{"start", "signal SIGTERM", "exit 3 signal"}, code: 3},
		"other signals":       {signals: []os.Signal{usr1, syscall.Signal(40), term}, want: []string{"start", "signal SIGUSR1", "signal SIG40", "signal SIGTERM", "exit 0 signal"}},
		"crash":               {args: "--crash-after 10ms --exit-code 1", want: []string{"start", "exit 1 crash"}, code: 1},
		"term ignored":        {args: "--ignore-term --crash-after 200ms", signals: []os.Signal{term, term}, want: []string{"start", "signal SIGTERM", "signal SIGTERM", "exit 0 crash"}},
		"second term is seen": {args: "--term-delay 200ms", signals: []os.Signal{term, term}, want: []string{"start", "signal SIGTERM", "signal SIGTERM", "exit 0 signal"}},
		"note":                {args: "note hello", want: []string{"note hello"}},
		"sleep":               {args: "sleep 1ms"},
		"bad sleep":           {args: "sleep long", code: exitUsage},
		"bad flag":            {args: "--exit-cod 3", code: exitUsage},
		"stray argument":      {args: "--ignore-term now", code: exitUsage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "signals")
			env := map[string]string{"SIGNAL_LOG": log, "CONTAINER_NAME": "app", "POD_UID": "uid-0"}
			signals := make(chan os.Signal, 10)
			for _, s := range tt.signals {
				signals <- s
			}
			var stdout bytes.Buffer
			if code := run(strings.Fields(tt.args), func(k string) string { return env[k] }, &stdout, signals); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if diff := cmp.Diff(tt.want, events(t, stdout.Bytes())); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			file, err := os.ReadFile(log)
			if err != nil || !bytes.Equal(file, stdout.Bytes()) {
				t.Errorf("file holds %q, %v; want what is on stdout", file, err)
			}
		})
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	out := &pipe{lines: make(chan line, 10)}
	ended := make(chan int)
	go func() {
		ended <- run([]string{"--http", "127.0.0.1:0", "--ready-after", "300ms"}, func(string) string { return "" }, out, signals)
	}()
	<-out.lines // start
	url := "http://" + (<-out.lines).Text
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Error(err)
		}
		return res.StatusCode
	}
	begin := time.Now()
	if code := get("/prestop?sleep=400ms"); code != http.StatusOK || time.Since(begin) < 400*time.Millisecond {
		t.Errorf("/prestop = %d after %s, want 200 after the sleep", code, time.Since(begin))
	}
	if l := <-out.lines; l.Event != eventPreStop {
		t.Errorf("event %+v, want prestop", l)
	}
	if code := get("/ready"); code != http.StatusOK {
		t.Errorf("/ready = %d, want 200 after --ready-after", code)
	}
	if code := get("/prestop?sleep=long"); code != http.StatusBadRequest {
		t.Errorf("/prestop with a bad sleep = %d, want 400", code)
	}
	signals <- syscall.SIGTERM
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestNotReadyYet(t *testing.T) {
	t.Parallel()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/ready", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler(config{readyAfter: time.Hour}, nil, &follower{}, time.Now(), nil).ServeHTTP(w, req)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("/ready = %d, want 503 before --ready-after", w.Code)
	}
}

// Clients that keep a connection leave a container that will be stopped.
func TestConnectionsAreClosedAfterPreStop(t *testing.T) {
	t.Parallel()
	j, err := newJournal(func(string) string { return "" }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	app := handler(config{}, j, &follower{}, time.Now(), nil)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w
	}
	if w := get("/"); w.Code != http.StatusOK || w.Header().Get("Connection") != "" {
		t.Errorf("before: %d %v", w.Code, w.Header())
	}
	get("/prestop")
	if w := get("/"); w.Code != http.StatusOK || w.Header().Get("Connection") != "close" {
		t.Errorf("after: %d %v", w.Code, w.Header())
	}
}

// A real process and a real signal.
func TestProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--exit-code", "9")
	cmd.Env = []string{"TESTAPP_MAIN=1"}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var first [1]byte // it has begun to write "start": its signals are caught
	if _, err := io.ReadFull(stdout, first[:]); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 9 {
		t.Errorf("exit code %d, want 9", code)
	}
	want := []string{"start", "signal SIGTERM", "exit 9 signal"}
	if diff := cmp.Diff(want, events(t, append(first[:], rest...))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func events(t *testing.T, out []byte) []string {
	t.Helper()
	var list []string
	for text := range strings.Lines(string(out)) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("line %q: %v", text, err)
		}
		if l.Time.IsZero() || l.MonoNS <= 0 || l.PID <= 0 || l.Host == "" {
			t.Errorf("line %q does not say when and where", text)
		}
		words := []string{l.Event}
		if l.Signal != "" {
			words = append(words, l.Signal)
		}
		if l.ExitCode != nil {
			b, err := json.Marshal(l.ExitCode)
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, string(b))
		}
		if l.Text != "" {
			words = append(words, l.Text)
		}
		list = append(list, strings.Join(words, " "))
	}
	return list
}

// pipe hands on each line as it is written.
type pipe struct {
	mu    sync.Mutex
	lines chan line
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return 0, err
	}
	p.lines <- l
	return len(b), nil
}
