package hook_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var instance = identity.ContainerID{Runtime: "containerd", ID: "c1"}

// executor is a runtime whose commands take some time.
type executor struct {
	takes  time.Duration
	output hook.Output
	err    error

	id      identity.ContainerID
	command []string
	timeout time.Duration
}

func (e *executor) Exec(ctx context.Context, id identity.ContainerID, command []string, timeout time.Duration) (hook.Output, error) {
	e.id, e.command, e.timeout = id, command, timeout
	select {
	case <-time.After(e.takes):
		return e.output, e.err
	case <-ctx.Done():
		return hook.Output{}, ctx.Err()
	}
}

// address is the IP of every pod.
type address string

func (a address) PodIP(context.Context, *corev1.Pod) (string, error) {
	if a == "" {
		return "", errors.New("the pod has no IP")
	}
	return string(a), nil
}

func call(handler corev1.LifecycleHandler) hook.Call {
	return hook.Call{
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "app"}},
			InitContainers: []corev1.Container{{Name: "mesh"}},
		}},
		Container: "app", ID: instance, Handler: &handler, Timeout: 10 * time.Second,
	}
}

func command(words ...string) corev1.LifecycleHandler {
	return corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: words}}
}

func TestExec(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		executor executor
		want     string // in the error; empty: none
		sentinel error
	}{
		"ends well":          {executor: executor{takes: 9 * time.Second}},
		"exits with 3":       {executor: executor{output: hook.Output{ExitCode: 3, Stderr: "no such queue"}}, want: "exit code 3: no such queue"},
		"says it on stdout":  {executor: executor{output: hook.Output{ExitCode: 1, Stdout: "busy"}}, want: "exit code 1: busy"},
		"says it on both":    {executor: executor{output: hook.Output{ExitCode: 1, Stderr: "no such queue", Stdout: "busy"}}, want: "exit code 1: no such queue"},
		"cut in a character": {executor: executor{output: hook.Output{ExitCode: 1, Stderr: "x" + strings.Repeat("é", 200)}}, want: ": x" + strings.Repeat("é", 99) + "…"},
		"writes no text":     {executor: executor{output: hook.Output{ExitCode: 1, Stderr: "a\xffb"}}, want: "exit code 1: a\uFFFDb"},
		"writes just enough": {executor: executor{output: hook.Output{ExitCode: 1, Stderr: strings.Repeat("x", 200)}}, want: ": " + strings.Repeat("x", 200)},
		"writes too much":    {executor: executor{output: hook.Output{ExitCode: 1, Stderr: strings.Repeat("x", 5000)}}, want: "xxx…"},
		"runtime is away":    {executor: executor{err: errors.New("runtime unavailable")}, want: "exec: runtime unavailable"},
		"never ends":         {executor: executor{takes: time.Hour}, want: "grace period", sentinel: hook.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				err := hook.New(hook.Config{Executor: &tt.executor}).Run(t.Context(), call(command("drain", "now")))
				wantError(t, err, tt.want, tt.sentinel)
				if took := time.Since(started); took > 10*time.Second {
					t.Errorf("took %s", took)
				}
				if e := tt.executor; e.id != instance || !slices.Equal(e.command, []string{"drain", "now"}) || e.timeout != 10*time.Second {
					t.Errorf("ran %q in %s for at most %s", e.command, e.id, e.timeout)
				}
			})
		})
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		seconds int64
		takes   time.Duration
		cut     bool
	}{
		"within the grace period":      {seconds: 4, takes: 4 * time.Second},
		"longer than the grace period": {seconds: 60, takes: 10 * time.Second, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				err := hook.New(hook.Config{}).Run(t.Context(), call(corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: tt.seconds}}))
				if took := time.Since(started); took != tt.takes || errors.Is(err, hook.ErrTimeout) != tt.cut || (err == nil) == tt.cut {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

// If the process that runs the hook ends, the error is the context's, and says nothing about the hook.
func TestCancelledIsNotTimeout(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, handler := range []corev1.LifecycleHandler{command("drain"), {Sleep: &corev1.SleepAction{Seconds: 5}}} {
		err := hook.New(hook.Config{Executor: &executor{takes: time.Second}}).Run(ctx, call(handler))
		if !errors.Is(err, context.Canceled) || errors.Is(err, hook.ErrTimeout) {
			t.Errorf("%v", err)
		}
	}
}

func TestUnsupportedHandlers(t *testing.T) {
	t.Parallel()
	for want, handler := range map[string]corev1.LifecycleHandler{
		"exec: not supported without a container runtime": command("drain"),
		"tcpSocket: not supported, and not by kubelet":    {TCPSocket: &corev1.TCPSocketAction{}},
		"hook without exec, httpGet or sleep":             {},
	} {
		wantError(t, hook.New(hook.Config{}).Run(t.Context(), call(handler)), want, hook.ErrUnsupported)
	}
}

func wantError(t *testing.T, err error, want string, sentinel error) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("failed: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want %q", err, want)
	case sentinel != nil && !errors.Is(err, sentinel):
		t.Errorf("error %v is not %v", err, sentinel)
	case err != nil && len(err.Error()) > 500:
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

// A command may end with the time of its hook, and has done its work.
func TestHookThatEndsInTheLastMomentHasBeenRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	last := lastMoment{cancel}
	if err := hook.New(hook.Config{Executor: last}).Run(ctx, call(command("drain"))); err != nil {
		t.Error(err)
	}
}

// lastMoment is a runtime that answers when nobody waits any more.
type lastMoment struct{ end context.CancelFunc }

func (l lastMoment) Exec(context.Context, identity.ContainerID, []string, time.Duration) (hook.Output, error) {
	l.end()
	return hook.Output{}, nil
}

func TestTextThatFitsIsNotMarkedAsCut(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 200)
	err := hook.New(hook.Config{Executor: &executor{output: hook.Output{ExitCode: 1, Stderr: text}}}).Run(t.Context(), call(command("drain")))
	if err == nil || !strings.HasSuffix(err.Error(), ": "+text) {
		t.Errorf("%v", err)
	}
}
