package fakecri_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/kit/fakecri"
)

func dial(t *testing.T, r *fakecri.Runtime) runtimeapi.RuntimeServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(r.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return runtimeapi.NewRuntimeServiceClient(conn)
}

// The toy kubelet starts what ended, counts restarts, and has the longer delay for a container whose
// ended instances are still there.
func TestKubelet(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end   func(*testing.T, *fakecri.Runtime, runtimeapi.RuntimeServiceClient, string)
		quick bool
	}{
		"exit": {end: func(_ *testing.T, r *fakecri.Runtime, _ runtimeapi.RuntimeServiceClient, id string) { r.Exit(id, 1) }},
		"stop": {end: func(t *testing.T, _ *fakecri.Runtime, c runtimeapi.RuntimeServiceClient, id string) {
			if _, err := c.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 5}); err != nil {
				t.Error(err)
			}
		}},
		"stop and removal": {quick: true, end: func(t *testing.T, _ *fakecri.Runtime, c runtimeapi.RuntimeServiceClient, id string) {
			if _, err := c.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
				t.Error(err)
			}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runtime := fakecri.Start(t)
			const slow = 2 * time.Second // more than a busy machine takes for what is quick
			started := make(chan fakecri.Instance, 10)
			runtime.ActAsKubelet(fakecri.Kubelet{
				Delay: func(exited int) time.Duration {
					if exited > 0 {
						return slow
					}
					return 0
				},
				OnStart: func(i fakecri.Instance) { started <- i },
			})
			sandbox := runtime.RunPod(identity.Pod{UID: "uid-0"}, "")
			id := runtime.RunContainer(sandbox, fakecri.Container{Name: "app", RestartCount: 3})
			begin := time.Now()
			tt.end(t, runtime, dial(t, runtime), id)
			next := <-started
			if took := time.Since(begin); (took < slow) != tt.quick {
				t.Errorf("next instance after %s, quick wanted: %v", took, tt.quick)
			}
			if next.ID == id || next.Name != "app" || next.PodUID != "uid-0" || next.RestartCount != 4 ||
				next.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
				t.Errorf("next instance = %+v", next)
			}
			runtime.StopPod(sandbox)
			for _, i := range runtime.Instances() {
				if i.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
					t.Errorf("%+v outlives its sandbox", i)
				}
			}
		})
	}
}

// A removal that follows the end of a container starts one next instance and not two.
func TestKubeletStartsOnce(t *testing.T) {
	t.Parallel()
	runtime := fakecri.Start(t)
	started := make(chan fakecri.Instance, 10)
	runtime.ActAsKubelet(fakecri.Kubelet{
		Delay:   func(int) time.Duration { return 50 * time.Millisecond },
		OnStart: func(i fakecri.Instance) { started <- i },
	})
	sandbox := runtime.RunPod(identity.Pod{UID: "uid-0"}, "")
	id := runtime.RunContainer(sandbox, fakecri.Container{Name: "app", Program: fakecri.Program{StartLatency: 50 * time.Millisecond}})
	if _, err := dial(t, runtime).RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	<-started
	// The end and the removal were both due to be looked at before that start.
	runtime.Close()
	if list := runtime.Instances(); len(list) != 1 {
		t.Errorf("instances after one removal: %+v", list)
	}
}

// What After and Times promise, and what the record says of it.
func TestFaults(t *testing.T) {
	t.Parallel()
	runtime := fakecri.Start(t)
	client := dial(t, runtime)
	id := runtime.RunContainer(runtime.RunPod(identity.Pod{UID: "uid-0"}, ""), fakecri.Container{Name: "app"})
	stop := func() codes.Code {
		_, err := client.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 30})
		return status.Code(err)
	}
	running := func() bool {
		return runtime.Instances()[0].State == runtimeapi.ContainerState_CONTAINER_RUNNING
	}

	runtime.SetFault("StopContainer", fakecri.Fault{Code: codes.Internal, Times: 1})
	if code := stop(); code != codes.Internal || !running() {
		t.Errorf("refused stop: %s, running: %v; want Internal and no effect", code, running())
	}
	runtime.SetFault("StopContainer", fakecri.Fault{Code: codes.Unavailable, After: true, Times: 1})
	if code := stop(); code != codes.Unavailable || running() {
		t.Errorf("stop with a lost answer: %s, running: %v; want Unavailable and the effect", code, running())
	}
	if code := stop(); code != codes.OK {
		t.Errorf("third stop: %s, want the faults used up", code)
	}
	calls := runtime.Calls("StopContainer")
	if len(calls) != 3 || calls[0].ContainerID != id || calls[0].Timeout != 30*time.Second ||
		calls[0].Code != codes.Internal || !calls[2].Done || calls[2].Code != codes.OK {
		t.Errorf("recorded %+v", calls)
	}

	runtime.SetFault("Version", fakecri.Fault{Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := client.Version(ctx, &runtimeapi.VersionRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("hung call: %v, want DeadlineExceeded", err)
	}
	runtime.ClearFaults()
	if _, err := client.Version(t.Context(), &runtimeapi.VersionRequest{}); err != nil {
		t.Error(err)
	}
}
