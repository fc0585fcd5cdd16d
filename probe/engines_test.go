package probe_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/refit-project/refit/probe"
)

func once(t *testing.T, p probe.Prober, timeout time.Duration) probe.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return p.Probe(ctx)
}

// asked probes once, without keeping the connection.
func asked(t *testing.T, g *probe.GRPC, timeout time.Duration) probe.Outcome {
	t.Helper()
	defer func() { _ = g.Close() }()
	return once(t, g, timeout)
}

func check(t *testing.T, got probe.Outcome, state probe.State, message string) {
	t.Helper()
	if got.State != state || !strings.Contains(got.Message, message) {
		t.Errorf("got %+v, want %s with %q", got, state, message)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestTCP(t *testing.T) {
	t.Parallel()
	check(t, once(t, probe.TCP{Address: listen(t).Addr().String()}, time.Minute), probe.Succeeded, "connected")
	check(t, once(t, probe.TCP{Address: refusing(t)}, time.Minute), probe.Failed, "refused")
	check(t, once(t, probe.TCP{Address: silent(t)}, 50*time.Millisecond), probe.Failed, "no answer in time")
}

// bound is a socket that has a port of its own and does not listen, and its address.
func bound(t *testing.T) (fd int, address string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}

// refusing is an address where connections are refused. The port stays in use: the port of a closed listener could be
// the next one's, and a process that was being started meanwhile would hold the listener for a moment.
func refusing(t *testing.T) string {
	t.Helper()
	_, address := bound(t)
	return address
}

// silent is an address where connections are neither accepted nor refused: the backlog of its listener is full.
func silent(t *testing.T) string {
	t.Helper()
	fd, address := bound(t)
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		conn, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
	return address
}

func TestGRPC(t *testing.T) {
	t.Parallel()
	l, bare := listen(t), listen(t)
	server, state := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, state)
	state.SetServingStatus("game", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	plain := grpc.NewServer()
	done := make(chan struct{}, 2)
	go func() { _ = server.Serve(l); done <- struct{}{} }()
	go func() { _ = plain.Serve(bare); done <- struct{}{} }()
	defer func() { server.Stop(); plain.Stop(); <-done; <-done }()

	address := l.Addr().String()
	check(t, asked(t, &probe.GRPC{Address: address}, time.Minute), probe.Succeeded, "SERVING")
	check(t, asked(t, &probe.GRPC{Address: address, Service: "game"}, time.Minute), probe.Failed, "NOT_SERVING")
	check(t, asked(t, &probe.GRPC{Address: address, Service: "other"}, time.Minute), probe.Failed, `does not know service "other"`)
	check(t, asked(t, &probe.GRPC{Address: bare.Addr().String()}, time.Minute), probe.Failed, "no health service")
	check(t, asked(t, &probe.GRPC{Address: silent(t)}, 50*time.Millisecond), probe.Failed, "no answer in time")
	check(t, asked(t, &probe.GRPC{Address: refusing(t)}, time.Minute), probe.Failed, "refused")
}

// execer answers as configured.
type execer struct {
	end probe.Execution
	err error
	got []string
}

func (e *execer) Exec(_ context.Context, command []string) (probe.Execution, error) {
	e.got = command
	return e.end, e.err
}

func TestExec(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end  probe.Execution
		err  error
		path string
		want probe.Outcome
	}{
		"exit 0":               {end: probe.Execution{Stdout: "idle\n", Stderr: "noise"}, want: probe.Outcome{State: probe.Succeeded, Message: "idle"}},
		"exit 0 with JSON":     {end: probe.Execution{Stdout: `{"n":3}`}, path: "{.n}", want: probe.Outcome{State: probe.Succeeded, Message: "3"}},
		"exit 1 with a word":   {end: probe.Execution{ExitCode: 1, Stdout: "out", Stderr: "bad\n"}, want: probe.Outcome{State: probe.Failed, Message: "bad"}},
		"exit 1, only stdout":  {end: probe.Execution{ExitCode: 1, Stdout: "out"}, want: probe.Outcome{State: probe.Failed, Message: "out"}},
		"exit 1, a blank line": {end: probe.Execution{ExitCode: 1, Stdout: "out", Stderr: "\n"}, want: probe.Outcome{State: probe.Failed, Message: "out"}},
		"exit 3 in silence":    {end: probe.Execution{ExitCode: 3}, want: probe.Outcome{State: probe.Failed, Message: "exit code 3"}},
		"not in time": {
			err: fmt.Errorf("exec: %w", context.DeadlineExceeded), want: probe.Outcome{State: probe.Failed, Message: "command did not end in time"},
		},
		"a broken runtime is not a broken app": {err: errors.New("runtime is down"), want: probe.Outcome{State: probe.Unknown, Message: "runtime is down"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &execer{end: tt.end, err: tt.err}
			got := probe.Exec{Execer: e, Command: []string{"cat", "state"}, JSONPath: tt.path}.Probe(t.Context())
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"cat", "state"}, e.got); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}

// The commands of this container, the ill-behaved among them.
func TestLocal(t *testing.T) {
	t.Parallel()
	sh := func(script string) probe.Exec {
		return probe.Exec{Execer: probe.Local{Env: []string{"PATH=/usr/bin:/bin"}}, Command: []string{"/bin/sh", "-c", script}}
	}
	tests := map[string]struct {
		probe   probe.Exec
		timeout time.Duration
		state   probe.State
		message string
	}{
		"success":                               {sh("echo idle"), time.Minute, probe.Succeeded, "idle"},
		"failure":                               {sh("echo bad >&2; exit 3"), time.Minute, probe.Failed, "bad"},
		"ended by a signal":                     {sh("kill -TERM $$"), time.Minute, probe.Failed, "exit code 143"},
		"never ends":                            {sh("sleep 60; true"), 100 * time.Millisecond, probe.Failed, "in time"},
		"ignores TERM":                          {sh("trap '' TERM; sleep 60; true"), 100 * time.Millisecond, probe.Failed, "in time"},
		"daemonises and keeps stdout open":      {sh("sleep 5 & echo up"), 30 * time.Second, probe.Succeeded, "up"},
		"daemonises out of the group and fails": {sh("setsid sleep 5 & exit 4"), 30 * time.Second, probe.Failed, "exit code 4"},
		"writes without end":                    {sh("yes"), 300 * time.Millisecond, probe.Failed, "in time"},
		"writes a lot":                          {sh("head -c 5000000 /dev/zero | tr '\\0' x"), time.Minute, probe.Succeeded, strings.Repeat("x", probe.MaxMessage)},
		"terminal escapes":                      {sh(`printf 'a\033[2J\377'`), time.Minute, probe.Succeeded, "a[2J"},
		"does not exist":                        {probe.Exec{Execer: probe.Local{}, Command: []string{"/nonexistent"}}, time.Minute, probe.Unknown, "no such file"},
		"nothing":                               {probe.Exec{Execer: probe.Local{}}, time.Minute, probe.Unknown, "no command"},
		"has none of our environment":           {probe.Exec{Execer: probe.Local{}, Command: []string{"/usr/bin/env"}}, time.Minute, probe.Succeeded, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			got := once(t, tt.probe, tt.timeout)
			check(t, got, tt.state, tt.message)
			if tt.message == "" && got.Message != "" {
				t.Errorf("message %q", got.Message)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

type counter struct {
	n   int
	err error
}

func (c counter) Count(context.Context) (int, error) { return c.n, c.err }

func TestProcess(t *testing.T) {
	t.Parallel()
	check(t, probe.Process{Counter: counter{n: 2}}.Probe(t.Context()), probe.Succeeded, "2")
	check(t, probe.Process{Counter: counter{}}.Probe(t.Context()), probe.Failed, "no such process")
	check(t, probe.Process{Counter: counter{err: errors.New("proc is hidden")}}.Probe(t.Context()), probe.Unknown, "proc is hidden")
}

func TestFile(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "token")
	write := func(name, text string, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, name)
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write("state", " idle\n", time.Minute)
	write("state.json", `{"n":7}`, 0)
	if err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.Symlink(outside, filepath.Join(dir, "stolen")),
		os.Symlink("state", filepath.Join(dir, "link")), os.Mkdir(filepath.Join(dir, "folder"), 0o700),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		config  probe.FileConfig
		state   probe.State
		message string
	}{
		"content is the result":     {probe.FileConfig{Name: "state"}, probe.Succeeded, "idle"},
		"through a link inside":     {probe.FileConfig{Name: "link"}, probe.Succeeded, "idle"},
		"JSON":                      {probe.FileConfig{Name: "state.json", JSONPath: "n"}, probe.Succeeded, "7"},
		"no JSON":                   {probe.FileConfig{Name: "state", JSONPath: "n"}, probe.Unknown, "not JSON"},
		"young enough":              {probe.FileConfig{Name: "state", MaxAge: time.Hour}, probe.Succeeded, "idle"},
		"too old":                   {probe.FileConfig{Name: "state", MaxAge: time.Second}, probe.Failed, "ago, more than 1s"},
		"content as wanted":         {probe.FileConfig{Name: "state", Content: "^ id"}, probe.Succeeded, "idle"},
		"other content":             {probe.FileConfig{Name: "state", Content: "allocated"}, probe.Failed, "does not match"},
		"missing":                   {probe.FileConfig{Name: "none"}, probe.Failed, "no such file"},
		"a folder":                  {probe.FileConfig{Name: "folder"}, probe.Failed, "not a regular file"},
		"a FIFO does not hang":      {probe.FileConfig{Name: "fifo"}, probe.Failed, "not a regular file"},
		"a link out of the folder":  {probe.FileConfig{Name: "stolen"}, probe.Unknown, "escapes"},
		"a path out of the folder":  {probe.FileConfig{Name: "../token"}, probe.Unknown, "escapes"},
		"a path through a file":     {probe.FileConfig{Name: "state/x"}, probe.Unknown, "not a directory"},
		"the folder itself missing": {probe.FileConfig{Dir: dir + "-none", Name: "state"}, probe.Failed, "no such file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.config.Dir == "" {
				tt.config.Dir = dir
			}
			p, err := probe.NewFile(tt.config)
			if err != nil {
				t.Fatal(err)
			}
			check(t, once(t, p, time.Minute), tt.state, tt.message)
		})
	}
	_, err := probe.NewFile(probe.FileConfig{MaxAge: -1, Content: "(", JSONPath: "{"})
	for _, want := range []string{"folder and name", "negative", "missing closing", "JSON path"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	for name, config := range map[string]probe.FileConfig{"folder": {Dir: dir}, "name": {Name: "state"}} {
		if _, err := probe.NewFile(config); err == nil {
			t.Errorf("only a %s is accepted", name)
		}
	}
}
