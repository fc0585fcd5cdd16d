package signal_test

import (
	"errors"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/poll"
	"github.com/refit-project/refit/test/kit/procfs"
)

func TestHandling(t *testing.T) {
	t.Parallel()
	fs, err := signal.New("/proc")
	if err != nil {
		t.Fatal(err)
	}
	set := filepath.Join(t.TempDir(), "set")
	// A shell that forks blocks all signals for that moment, so this one only waits for its input.
	shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", `trap : USR1; trap "" USR2; : > "$0"; read line`, set)
	if _, err := shell.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the traps are set", func() bool { _, err := os.Stat(set); return err == nil })
	p := processOf(t, fs, shell.Process.Pid)
	for sig, want := range map[syscall.Signal]signal.Handling{
		syscall.SIGUSR1: signal.Handled, syscall.SIGUSR2: signal.Handled, syscall.SIGALRM: signal.DefaultAction, syscall.SIGTERM: signal.DefaultAction,
	} {
		if got, err := fs.Handling(p, sig); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", signal.Name(sig), got, err, want)
		}
	}
	if age, err := signal.Age(p); err != nil || age < 0 || age > time.Minute {
		t.Errorf("age %s, %v", age, err)
	}
	if err := shell.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = shell.Wait()
	if _, err := fs.Handling(p, syscall.SIGUSR1); err == nil {
		t.Error("a process that has ended has signals")
	}
}

// TestHandlingOfAProgramInGo: this test is one. It has not asked for SIGHUP, which would end it although its runtime has a handler.
func TestHandlingOfAProgramInGo(t *testing.T) {
	t.Parallel()
	fs, err := signal.New("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if ossignal.Ignored(syscall.SIGHUP) {
		t.Skip("started by nohup, which ignores SIGHUP")
	}
	p := processOf(t, fs, os.Getpid())
	if got, err := fs.Handling(p, syscall.SIGHUP); err != nil || got != signal.HandledByRuntime {
		t.Errorf("%d, %v, want %d", got, err, signal.HandledByRuntime)
	}
	before, err := fs.CPUTime(p)
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the test has used a processor", func() bool { now, err := fs.CPUTime(p); return err == nil && now > before })
}

// gVisor does not say which signals a process handles. A malformed file is an error.
func TestHandlingWhereTheKernelDoesNotSay(t *testing.T) {
	t.Parallel()
	const malformed signal.Handling = -1
	for status, want := range map[string]signal.Handling{
		"Name:\tapp\nPid:\t7\n":                                              signal.Handled,
		"Name:\tapp\nSigCgt:\t0000000000000001\n":                            signal.Handled,
		"Name:\tapp\nSigCgt:\t0000000000000002\n":                            signal.DefaultAction,
		"Name:\tapp\nSigBlk:\t0000000000000001\n":                            signal.Handled,
		"Name:\tapp\nSigIgn:\t0000000000000001\n":                            signal.Handled,
		"Name:\tapp\nSigCgt:\tfffffffd7fc1feff\n":                            signal.HandledByRuntime,
		"Name:\tapp\nSigIgn:\t0000000000000001\nSigCgt:\tfffffffd7fc1feff\n": signal.Handled,
		"Name:\tapp\nSigIgn:\t0000000000000000\nSigCgt:\tfffffffd7fc1fefe\n": signal.DefaultAction,
		"Name:\tapp\nSigCgt:\tzz\n":                                          malformed,
		"Name:\tapp\\nSigCgt:\t1\nSigIgn:\t00000000\n":                       signal.DefaultAction, // as the kernel shows a name with a line break
	} {
		root := t.TempDir()
		folder := filepath.Join(root, "7")
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		stat := "7 (app) S 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
		for name, content := range map[string]string{"status": status, "stat": stat} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		fs, err := signal.New(root)
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.Handling(signal.Process{PID: 7, Start: 5}, syscall.SIGHUP)
		if (err != nil) != (want == malformed) || err == nil && got != want {
			t.Errorf("%q: %d, %v, want %d", status, got, err, want)
		}
	}
}

// Another process has the PID now, whose handlers do not matter.
func TestHandlingOfAProcessThatIsGone(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Put(procfs.Process{PID: 7, Start: 100})
	tree.Put(procfs.Process{PID: 8, Start: 100, State: 'Z'})
	fs := open(t, tree.Root)
	for name, p := range map[string]signal.Process{"another process": {PID: 7, Start: 99}, "none": {PID: 9, Start: 100}, "a zombie": {PID: 8, Start: 100}} {
		if _, err := fs.Handling(p, syscall.SIGHUP); !errors.Is(err, signal.ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := fs.CPUTime(p); !errors.Is(err, signal.ErrGone) {
			t.Errorf("processor time of %s: %v", name, err)
		}
	}
	if got, err := fs.Handling(signal.Process{PID: 7, Start: 100}, syscall.SIGHUP); err != nil || got != signal.Handled {
		t.Errorf("the process itself: %d, %v", got, err)
	}
}

func processOf(t *testing.T, fs *signal.FS, pid int) signal.Process {
	t.Helper()
	all, err := fs.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.PID == pid {
			return p
		}
	}
	t.Fatalf("process %d is not there", pid)
	return signal.Process{}
}
