package cri_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/kit/fakecri"
	"github.com/refit-project/refit/test/kit/poll"
)

// hasty is the deadline of calls that hang; an exec has the second more that CRI's unit costs. Calls that are to succeed
// have the default, since on a busy machine a call may take long.
const hasty = 300 * time.Millisecond

func newClient(t *testing.T, endpoint string, onCall func(string, time.Duration, error)) *cri.Client {
	t.Helper()
	return connect(t, cri.Config{Endpoint: endpoint, OnCall: onCall})
}

func connect(t *testing.T, config cri.Config) *cri.Client {
	t.Helper()
	client, err := cri.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func newRuntime(t *testing.T) (runtime *fakecri.Runtime, id string) {
	t.Helper()
	runtime = fakecri.Start(t)
	runtime.Commands["true"] = fakecri.Command{}
	sandbox := runtime.RunPod(identity.Pod{Namespace: "shop", Name: "web-0", UID: "uid-0"}, "10.0.0.7")
	return runtime, runtime.RunContainer(sandbox, fakecri.Container{Name: "app", Image: "nginx:1"})
}

// calls is every method of the client with the CRI methods it uses.
func calls() map[string]struct {
	methods []string
	do      func(context.Context, *cri.Client, string) error
	// gone: an answer NotFound is what the caller wanted.
	gone bool
} {
	type entry = struct {
		methods []string
		do      func(context.Context, *cri.Client, string) error
		gone    bool
	}
	return map[string]entry{
		"Version": {methods: []string{"Version"}, do: func(ctx context.Context, c *cri.Client, _ string) error {
			_, err := c.Version(ctx)
			return err
		}},
		"ListContainers": {methods: []string{"ListContainers"}, do: func(ctx context.Context, c *cri.Client, _ string) error {
			_, err := c.ListContainers(ctx, "uid-0")
			return err
		}},
		"ContainerStatus": {methods: []string{"ContainerStatus"}, do: func(ctx context.Context, c *cri.Client, id string) error {
			_, err := c.ContainerStatus(ctx, id)
			return err
		}},
		"SandboxAddresses": {methods: []string{"ListPodSandbox", "PodSandboxStatus"}, do: func(ctx context.Context, c *cri.Client, _ string) error {
			_, err := c.SandboxAddresses(ctx, "uid-0")
			return err
		}},
		"SandboxIP": {methods: []string{"ListPodSandbox", "PodSandboxStatus"}, do: func(ctx context.Context, c *cri.Client, _ string) error {
			_, err := c.SandboxIP(ctx, "uid-0")
			return err
		}},
		"StopContainer": {methods: []string{"StopContainer"}, gone: true, do: func(ctx context.Context, c *cri.Client, id string) error {
			return c.StopContainer(ctx, id, 0)
		}},
		"RemoveContainer": {methods: []string{"RemoveContainer"}, gone: true, do: func(ctx context.Context, c *cri.Client, id string) error {
			return c.RemoveContainer(ctx, id)
		}},
		"ExecSync": {methods: []string{"ExecSync"}, do: func(ctx context.Context, c *cri.Client, id string) error {
			_, err := c.ExecSync(ctx, id, []string{"true"}, time.Second)
			return err
		}},
	}
}

func TestFaultOfEachMethod(t *testing.T) {
	t.Parallel()
	faults := map[string]struct {
		fault fakecri.Fault
		want  error // nil: the call succeeds
	}{
		"none":        {},
		"delay":       {fault: fakecri.Fault{Delay: hasty / 3}},
		"hang":        {fault: fakecri.Fault{Hang: true}, want: cri.ErrDeadline},
		"answer lost": {fault: fakecri.Fault{Hang: true, After: true}, want: cri.ErrDeadline},
		"unavailable": {fault: fakecri.Fault{Code: codes.Unavailable, Message: "going down"}, want: cri.ErrUnavailable},
		"canceled":    {fault: fakecri.Fault{Code: codes.Canceled, Message: "going down"}, want: cri.ErrUnavailable},
		"deadline":    {fault: fakecri.Fault{Code: codes.DeadlineExceeded, Message: "shim is slow"}, want: cri.ErrDeadline},
		"not found":   {fault: fakecri.Fault{Code: codes.NotFound, Message: "no such thing"}, want: cri.ErrNotFound},
		"exhausted":   {fault: fakecri.Fault{Code: codes.ResourceExhausted, Message: "too many"}, want: cri.ErrExhausted},
		"too large":   {fault: fakecri.Fault{Code: codes.ResourceExhausted, Message: "grpc: received message larger than max (9 vs. 8)"}, want: cri.ErrTooLarge},
		"unsupported": {fault: fakecri.Fault{Code: codes.Unimplemented, Message: "unknown method"}, want: cri.ErrUnsupported},
	}
	for name, call := range calls() {
		for before, method := range call.methods {
			for faultName, tt := range faults {
				t.Run(name+"/"+method+"/"+faultName, func(t *testing.T) {
					t.Parallel()
					runtime, id := newRuntime(t)
					config := cri.Config{Endpoint: runtime.Endpoint()}
					if tt.fault.Hang {
						limit := hasty
						if before > 0 {
							limit = 10 * hasty // for the calls before it as well, which are to succeed
						}
						config.CallTimeout, config.StopMargin, config.ExecMargin = limit, limit, limit
					}
					client := connect(t, config)
					runtime.SetFault(method, tt.fault)
					start := time.Now()
					err := call.do(t.Context(), client, id)
					if took := time.Since(start); took > 10*time.Second {
						t.Errorf("took %s, want the deadline to bound it", took)
					}
					if tt.want == nil || (call.gone && errors.Is(tt.want, cri.ErrNotFound)) {
						if err != nil {
							t.Errorf("got %v, want success", err)
						}
						return
					}
					if !errors.Is(err, tt.want) {
						t.Fatalf("got %v, want %v", err, tt.want)
					}
					if !strings.Contains(err.Error(), method) || !strings.Contains(err.Error(), tt.fault.Message) {
						t.Errorf("%q does not name the call %s and keep the text %q", err, method, tt.fault.Message)
					}
				})
			}
		}
	}
}

// An error that is about a container names it as crictl prints it.
func TestErrorNamesContainer(t *testing.T) {
	t.Parallel()
	runtime, id := newRuntime(t)
	client := newClient(t, runtime.Endpoint(), nil)
	runtime.SetFault("ContainerStatus", fakecri.Fault{Code: codes.Internal, Message: strings.Repeat("x\xff", 10_000)})
	_, err := client.ContainerStatus(t.Context(), id)
	if err == nil || !strings.HasPrefix(err.Error(), "ContainerStatus "+id[:13]+": Internal: ") {
		t.Errorf("got %.100v", err)
	}
	if err != nil && len(err.Error()) > 1000 {
		t.Errorf("error repeats %d foreign bytes", len(err.Error()))
	}
}

func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	runtime, id := newRuntime(t)
	client := newClient(t, runtime.Endpoint(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client.StopContainer(ctx, id, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("StopContainer = %v, want context.Canceled", err)
	}
}

// lateTimer is a context whose timer fires some time after its deadline, as on a busy machine.
type lateTimer struct{ context.Context }

func (lateTimer) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// The runtime knows the deadline of the call and may end it before the caller's timer fires: the caller finds the reason in ctx.
func TestCallThatEndsByItsDeadlineEndsAfterTheCallersContext(t *testing.T) {
	t.Parallel()
	runtime, _ := newRuntime(t)
	client := newClient(t, runtime.Endpoint(), nil)
	why := errors.New("why the caller gave up")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
	defer cancel()
	if _, err := client.Version(lateTimer{ctx}); !errors.Is(err, cri.ErrDeadline) {
		t.Errorf("Version = %v, want ErrDeadline", err)
	}
	if got := context.Cause(ctx); !errors.Is(got, why) {
		t.Errorf("the call has ended before its context: cause %v", got)
	}
}

// Many hanging calls of one method do not delay calls of other methods.
func TestHungCallsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	runtime, id := newRuntime(t)
	runtime.SetFault("StopContainer", fakecri.Fault{Hang: true})
	client, err := cri.New(cri.Config{Endpoint: runtime.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var hung sync.WaitGroup
	const many = 200
	for range many {
		hung.Go(func() {
			if err := client.StopContainer(ctx, id, time.Minute); !errors.Is(err, context.Canceled) {
				t.Errorf("hung call ended with %v", err)
			}
		})
	}
	poll.Until(t, "hung calls to arrive", func() bool { return len(runtime.Calls("StopContainer")) == many })
	start := time.Now()
	if _, err := client.ListContainers(t.Context(), "uid-0"); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("a list beside %d hung calls took %s", many, took)
	}
	cancel()
	hung.Wait()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func TestOnCall(t *testing.T) {
	t.Parallel()
	runtime, id := newRuntime(t)
	type seen struct {
		method string
		err    error
	}
	var mu sync.Mutex
	var got []seen
	client := newClient(t, runtime.Endpoint(), func(method string, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, seen{method, err})
		if took <= 0 {
			t.Errorf("%s took %s", method, took)
		}
	})
	runtime.SetFault("Version", fakecri.Fault{Code: codes.Unavailable})
	client.Version(t.Context())                    //nolint:errcheck // the hook sees it
	client.StopContainer(t.Context(), id, 0)       //nolint:errcheck // likewise
	client.ContainerStatus(t.Context(), "unknown") //nolint:errcheck // likewise
	want := []struct {
		method string
		is     error
	}{{"Version", cri.ErrUnavailable}, {"StopContainer", nil}, {"ContainerStatus", cri.ErrNotFound}}
	if len(got) != len(want) {
		t.Fatalf("hook saw %v, want %v", got, want)
	}
	for i := range want {
		if got[i].method != want[i].method || !errors.Is(got[i].err, want[i].is) {
			t.Errorf("call %d: hook saw %v, want %v", i, got[i], want[i])
		}
	}
}
