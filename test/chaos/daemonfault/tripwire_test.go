package daemonfault

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/criproxy"
)

// startDaemon runs a program under the daemon's name.
func startDaemon(t *testing.T) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), cluster.DaemonName)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command
}

func TestTripwireKillsAtThePoint(t *testing.T) {
	t.Parallel()
	daemon := startDaemon(t)
	caller := "pid=" + strconv.Itoa(daemon.Process.Pid) + " comm=refit-daemon grpc-go/1"
	wire := &tripwire{node: "node-1"}
	shot := wire.arm(func(call criproxy.Line, answered bool) (time.Duration, bool) {
		return 0, call.Method == "StopContainer" && answered
	})
	wire.Came(criproxy.Line{Method: "StopContainer", Caller: caller})
	wire.Answered(criproxy.Line{Method: "ListContainers", Caller: caller}, nil)
	select {
	case <-shot:
		t.Fatal("shot before the point")
	default:
	}
	if pid, since := wire.process(); pid != daemon.Process.Pid || since.IsZero() {
		t.Errorf("process %d since %s, want %d", pid, since, daemon.Process.Pid)
	}
	wire.Answered(criproxy.Line{Method: "StopContainer", Caller: caller}, nil)
	<-shot
	if err := daemon.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("daemon ended with %v, want SIGKILL", err)
	}
	wire.arm(func(criproxy.Line, bool) (time.Duration, bool) { return 0, true })
	wire.Came(criproxy.Line{Caller: "pid=1 comm=init"})
	if pid, _ := wire.process(); pid != daemon.Process.Pid {
		t.Errorf("process %d, want what is no daemon to be left alone", pid)
	}
}

func TestTripwireTruncatesLists(t *testing.T) {
	t.Parallel()
	wire := &tripwire{}
	answer, err := proto.Marshal(&runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{{Id: "a"}, {Id: "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	count := func(method string) int {
		var list runtimeapi.ListContainersResponse
		if err := proto.Unmarshal(wire.Answered(criproxy.Line{Method: method}, answer), &list); err != nil {
			t.Fatal(err)
		}
		return len(list.GetContainers())
	}
	wire.spoilLists(func(list *runtimeapi.ListContainersResponse) { list.Containers = list.Containers[1:] })
	if listed, other := count("ListContainers"), count("ContainerStatus"); listed != 1 || other != 2 {
		t.Errorf("%d containers in a spoilt list and %d elsewhere, want 1 and 2", listed, other)
	}
	wire.spoilLists(nil)
	if listed := count("ListContainers"); listed != 2 {
		t.Errorf("%d containers afterwards, want 2", listed)
	}
}
