package chaos

import (
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/test/chaos/history"
	"github.com/refit-project/refit/test/criproxy"
)

// startDaemon runs a program under the daemon's name.
func startDaemon(t *testing.T) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), daemonName)
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

func TestTripwireSpoilsLists(t *testing.T) {
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

func TestTailGivesWholeLines(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	write := func(text string) {
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("old\nfirst\nsec")
	log, err := openTail(name, int64(len("old\n")))
	if err != nil {
		t.Fatal(err)
	}
	defer log.close()
	next := func() string {
		line, err := log.next()
		if err != nil {
			t.Fatal(err)
		}
		return string(line)
	}
	got := []string{next(), next()}
	write("ond\n")
	got = append(got, next(), next())
	if want := []string{"first\n", "", "second\n", ""}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

func TestJournalIsWhatTheJudgeReads(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "faults.jsonl")
	j, err := openJournal(name, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.fault(history.Fault{Kind: kindKill, Detail: "at once", Begin: time.Now().Add(-time.Second), Impedes: true}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil || j.close() != nil {
		t.Fatal(err)
	}
	faults, err := history.ParseFaults(name, strings.NewReader(string(content)))
	if err != nil || len(faults) != 1 || faults[0].Kind != kindKill || !faults[0].Impedes || faults[0].End.Sub(faults[0].Begin) < time.Second {
		t.Errorf("faults %+v, %v", faults, err)
	}
}

func TestDeckDealsEveryNumberBeforeAnyAgain(t *testing.T) {
	t.Parallel()
	var d deck
	choice := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		seen := map[int]bool{}
		for range 5 {
			seen[d.next(5, choice)] = true
		}
		if len(seen) != 5 {
			t.Errorf("dealt %v, want all five", seen)
		}
	}
}

func TestLoadIsJudgedWithoutACluster(t *testing.T) {
	t.Parallel()
	err := Config{Duration: 5 * time.Second, Rate: 1}.ValidateLoad()
	if err == nil || !strings.Contains(err.Error(), "duration 5s: want at least 1m") || !strings.Contains(err.Error(), "0 pods") {
		t.Errorf("error %v, want both faults", err)
	}
	if err := (Config{Duration: time.Minute, Pods: 1, Rate: 1}).ValidateLoad(); err != nil {
		t.Error(err)
	}
}
