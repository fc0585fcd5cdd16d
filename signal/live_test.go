package signal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	ossignal "os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/signal"
)

// roleEnv makes the test binary one of the programs below instead.
const roleEnv = "REFIT_SIGNAL_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "target":
		beTarget()
	case "sender":
		beSender()
	}
}

// beTarget says "ready", and the name of each SIGHUP that arrives. It ends with the test: a test binary that is killed
// runs no cleanup, and its children would be left behind.
func beTarget() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the write end is closed, by whatever ends the test
		os.Exit(0)
	}()
	hup := make(chan os.Signal, 16)
	ossignal.Notify(hup, syscall.SIGHUP)
	fmt.Println("ready")
	for range hup {
		fmt.Println("SIGHUP")
	}
}

// beSender checks its parent, which runs as another UID, and prints the result.
func beSender() {
	f, err := signal.New("/proc")
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := f.Find(context.Background(), signal.Selector{CmdlineContains: os.Args[1]})
	if err == nil {
		err = f.Check(found[0])
	}
	var denied *signal.PermissionError
	fmt.Println(errors.As(err, &denied), errors.Is(err, fs.ErrPermission))
	fmt.Fprintln(os.Stderr, err)
}

// startRole runs the test binary as role under the given title and returns its lines.
func startRole(t *testing.T, role, title string, attr *syscall.SysProcAttr) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Args = []string{title}
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.SysProcAttr = attr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func expect(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || lines.Text() != want {
		t.Fatalf("got %q, %v, want %q", lines.Text(), lines.Err(), want)
	}
}

func TestSignalARealProcess(t *testing.T) {
	t.Parallel()
	title := "refit-target-" + strconv.Itoa(os.Getpid())
	cmd, lines := startRole(t, "target", title, nil)
	expect(t, lines, "ready")
	f := open(t, "/proc")
	sel := signal.Selector{Title: title}
	sent, err := f.Signal(t.Context(), sel, syscall.SIGHUP)
	if err != nil || len(sent) != 1 || sent[0].PID != cmd.Process.Pid {
		t.Fatalf("Signal: %v, %v, want PID %d", sent, err, cmd.Process.Pid)
	}
	expect(t, lines, "SIGHUP")
	if err := f.Send(sent[0], syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	expect(t, lines, "SIGHUP")

	if _, err := f.Signal(t.Context(), sel, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Until it is a zombie: its files are closed before that.
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Send(sent[0], syscall.SIGHUP); !errors.Is(err, signal.ErrGone) {
		t.Errorf("to the zombie: err = %v, want ErrGone", err)
	}
	_ = cmd.Wait()
	if err := f.Send(sent[0], syscall.SIGHUP); !errors.Is(err, signal.ErrGone) {
		t.Errorf("after its end: err = %v, want ErrGone", err)
	}
}

// No program is run for it, so there need be none beside ours.
func TestWorksWithoutAnyOtherProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	title := "refit-alone-" + strconv.Itoa(os.Getpid())
	cmd, lines := startRole(t, "target", title, nil)
	expect(t, lines, "ready")
	sent, err := open(t, "/proc").Signal(t.Context(), signal.Selector{Title: title}, syscall.SIGHUP)
	if err != nil || len(sent) != 1 || sent[0].PID != cmd.Process.Pid {
		t.Fatalf("Signal: %v, %v, want PID %d", sent, err, cmd.Process.Pid)
	}
	expect(t, lines, "SIGHUP")
}

func TestPermissionOfARealProcess(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user")
	}
	title := "refit-privileged-" + strconv.Itoa(os.Getpid())
	_, lines := startRole(t, "target", title, nil)
	expect(t, lines, "ready")
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", title)
	cmd.Env = append(os.Environ(), roleEnv+"=sender")
	cmd.SysProcAttr = nobody
	cmd.Args[0] = "sender"
	out, err := cmd.Output()
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("the test binary is in a folder others must stay out: %v", err)
	}
	if err != nil || string(out) != "true true\n" {
		t.Errorf("sender said %q, %v, want a PermissionError", out, err)
	}
}

// prometheus/procfs reads the same files with other code; the two must agree on whatever runs here and stays
// as it is meanwhile.
func TestProcessesAgreeWithProcfs(t *testing.T) {
	t.Parallel()
	f := open(t, "/proc")
	before, err := f.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := procfs.NewFS("/proc")
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[int]signal.Process{}
	for _, p := range before {
		if q, ok := readWithProcfs(peer, p.PID); ok {
			theirs[p.PID] = q
		}
	}
	after, err := f.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, p := range after {
		want, ok := theirs[p.PID]
		if !ok || !slices.Contains(before, p) {
			continue
		}
		compared++
		got := signal.Process{PID: p.PID, PPID: p.PPID, Start: p.Start, Comm: p.Comm, UID: p.UID}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-procfs +ours):\n%s", diff)
		}
	}
	if compared == 0 {
		t.Error("nothing compared")
	}
}

func readWithProcfs(peer procfs.FS, pid int) (signal.Process, bool) {
	proc, err := peer.Proc(pid)
	if err != nil {
		return signal.Process{}, false
	}
	st, err := proc.Stat()
	if err != nil {
		return signal.Process{}, false
	}
	status, err := proc.NewStatus()
	if err != nil {
		return signal.Process{}, false
	}
	return signal.Process{PID: st.PID, PPID: st.PPID, Start: st.Starttime, Comm: st.Comm, UID: int(status.UIDs[0])}, true
}

// Processes come and go while they are read.
func TestFindAmongShortLivedProcesses(t *testing.T) {
	t.Parallel()
	f := open(t, "/proc")
	stop := make(chan struct{})
	var forks sync.WaitGroup
	for range 4 {
		forks.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = exec.CommandContext(t.Context(), "/bin/true").Run()
				}
			}
		})
	}
	times := 100
	if testing.Short() {
		times = 10
	}
	for range times {
		if _, err := f.Find(t.Context(), signal.Selector{UID: new(4_000_000)}); !errors.Is(err, signal.ErrNotFound) {
			t.Errorf("err = %v, want ErrNotFound", err)
			break
		}
	}
	close(stop)
	forks.Wait()
}
