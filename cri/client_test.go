package cri_test

import (
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/test/kit/fakecri"
	"github.com/refit-project/refit/test/kit/poll"
)

// The daemon starts before the runtime: New succeeds, calls fail at once and by name, and work soon
// after somebody listens, also when that is another process with a new socket file.
func TestRuntimeThatStartsLaterIsReached(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "containerd.sock")
	client := newClient(t, socket, nil)
	for round := range 2 {
		start := time.Now()
		_, err := client.Version(t.Context())
		if !errors.Is(err, cri.ErrUnavailable) {
			t.Fatalf("without a socket: %v, want ErrUnavailable", err)
		}
		// In the second round the client may still be reading the end of the old connection.
		if round == 0 && !strings.Contains(err.Error(), socket) {
			t.Errorf("%q does not name the socket", err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("without a socket: took %s, want it to fail at once", took)
		}
		runtime, err := fakecri.Listen(socket)
		if err != nil {
			t.Fatal(err)
		}
		start = time.Now()
		poll.Until(t, "version", func() bool {
			_, err := client.Version(t.Context())
			return err == nil
		})
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("found the runtime after %s, want 5 s at most", took)
		}
		runtime.Close()
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config cri.Config
		want   []string // parts of the error; none: valid
	}{
		"path":         {config: cri.Config{Endpoint: "/run/containerd/containerd.sock"}},
		"unix":         {config: cri.Config{Endpoint: "unix:///run/containerd/containerd.sock"}},
		"nothing":      {want: []string{"endpoint"}},
		"relative":     {config: cri.Config{Endpoint: "containerd.sock"}, want: []string{"absolute path"}},
		"over network": {config: cri.Config{Endpoint: "tcp://10.0.0.1:1234"}, want: []string{"absolute path"}},
		"all at once": {
			config: cri.Config{Endpoint: "/a\x00b", CallTimeout: -1, StopMargin: -1, ExecMargin: -1},
			want:   []string{"zero byte", "call timeout", "stop margin", "exec margin"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.config.Validate()
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("Validate() = %v, want %v", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Validate() = %v, want it to say %q", err, part)
				}
			}
			client, newErr := cri.New(tt.config)
			if (newErr == nil) != (err == nil) {
				t.Errorf("New() = %v, Validate() = %v", newErr, err)
			}
			if newErr == nil {
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What is listed may be stopped, so a confused runtime's list must not reach beyond the pod.
func TestListContainersOfConfusedRuntime(t *testing.T) {
	t.Parallel()
	runtime, id := newRuntime(t)
	client := newClient(t, runtime.Endpoint(), nil)
	foreign := &runtimeapi.Container{Id: strings.Repeat("f", 64), Labels: map[string]string{kubelet.LabelPodUID: "uid-9"}}
	tests := map[string]struct {
		edit func(any)
		want []string
	}{
		"doubled":     {edit: fakecri.DoubleEntries, want: []string{id}},
		"cut short":   {edit: fakecri.HalveEntries},
		"another pod": {edit: add(foreign), want: []string{id}},
		"no labels":   {edit: add(&runtimeapi.Container{Id: foreign.Id}), want: []string{id}},
		"no ID":       {edit: add(&runtimeapi.Container{Labels: map[string]string{kubelet.LabelPodUID: "uid-0"}}), want: []string{id}},
	}
	for name, tt := range tests { //nolint:paralleltest // they take turns with one runtime
		t.Run(name, func(t *testing.T) {
			runtime.SetFault("ListContainers", fakecri.Fault{Edit: tt.edit})
			list, err := client.ListContainers(t.Context(), "uid-0")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range list {
				got = append(got, c.ID)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("listed %v, want %v", got, tt.want)
			}
		})
	}
}

func add(c *runtimeapi.Container) func(any) {
	return func(answer any) {
		m := answer.(*runtimeapi.ListContainersResponse)
		m.Containers = append(m.Containers, c)
	}
}

func TestSandboxIP(t *testing.T) {
	t.Parallel()
	runtime := fakecri.Start(t)
	client := newClient(t, runtime.Endpoint(), nil)
	pod := identity.Pod{Namespace: "shop", Name: "web-0", UID: "uid-0"}
	runtime.RunPod(pod, "10.0.0.1")
	runtime.RunPod(pod, "10.0.0.2")
	runtime.RunPod(identity.Pod{UID: "uid-6"}, "FD00::0007")
	runtime.RunPod(identity.Pod{UID: "uid-host"}, "")
	runtime.RunPod(identity.Pod{UID: "uid-bad"}, "evil.example/?")
	runtime.StopPod(runtime.RunPod(identity.Pod{UID: "uid-stopped"}, "10.0.0.3"))
	runtime.StopPod(runtime.RunPod(pod, "10.0.0.4"))
	tests := map[string]struct {
		uid, want string
		err       func(error) bool
	}{
		"newest of two":     {uid: "uid-0", want: "10.0.0.2"},
		"IPv6":              {uid: "uid-6", want: "fd00::7"},
		"host network":      {uid: "uid-host"},
		"stopped sandbox":   {uid: "uid-stopped", err: notFound},
		"unknown pod":       {uid: "uid-none", err: notFound},
		"no UID is not any": {err: notFound},
		"not an address":    {uid: "uid-bad", err: func(err error) bool { return !notFound(err) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := client.SandboxIP(t.Context(), tt.uid)
			if got != tt.want || (err != nil) != (tt.err != nil) || (err != nil && !tt.err(err)) {
				t.Errorf("SandboxIP(%q) = %q, %v; want %q", tt.uid, got, err, tt.want)
			}
		})
	}
}

func TestSandboxOfTwoFamiliesHasTwoAddresses(t *testing.T) {
	t.Parallel()
	runtime := fakecri.Start(t)
	client := newClient(t, runtime.Endpoint(), nil)
	runtime.RunPod(identity.Pod{UID: "uid-both"}, "10.0.0.5", "fd00::0005")
	got, err := client.SandboxAddresses(t.Context(), "uid-both")
	if want := []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("fd00::5")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func notFound(err error) bool { return errors.Is(err, cri.ErrNotFound) }

// The deadline of a stop is the grace period and the margin: kruise's 5 s are not enough for either.
func TestStopContainerWaitsForGrace(t *testing.T) {
	t.Parallel()
	runtime := fakecri.Start(t)
	client := connect(t, cri.Config{Endpoint: runtime.Endpoint(), CallTimeout: hasty}) // which must not bound a stop
	sandbox := runtime.RunPod(identity.Pod{UID: "uid-0"}, "")
	id := runtime.RunContainer(sandbox, fakecri.Container{Name: "app", Program: fakecri.Program{TermDelay: 5 * hasty}})
	if err := client.StopContainer(t.Context(), id, 1600*time.Millisecond); err != nil {
		t.Errorf("stop of a slow container = %v, want success within its grace period", err)
	}
	stops := runtime.Calls("StopContainer")
	if len(stops) != 1 || stops[0].Timeout != 2*time.Second {
		t.Errorf("runtime was asked %+v, want one stop with 2 s", stops)
	}
}
