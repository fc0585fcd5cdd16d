package sidecarmode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// initEnv makes the test binary a sidecar that is PID 1; its value is a folder for it.
const initEnv = "REFIT_TEST_INIT"

func init() {
	folder := os.Getenv(initEnv)
	if folder == "" {
		return
	}
	if err := runAsInit(folder); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runAsInit runs the sidecar, and beside it a command that leaves a process behind, and returns when that has been
// waited for.
func runAsInit(folder string) error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("PID %d, want 1", pid)
	}
	proc, config := filepath.Join(folder, "proc"), filepath.Join(folder, "config.yaml")
	if err := errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), os.Mkdir(proc, 0o700)); err != nil {
		return err
	}
	if err := unix.Mount("proc", proc, "proc", 0, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	text := "procRoot: " + proc + "\nhealth: 'off'\nserver: {address: '127.0.0.1:0'}\nplugins: []\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	reapInterval = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{File: config, Namespace: "games", Pod: "gs-0", Grace: time.Second, Logger: slog.New(slog.DiscardHandler)})
	}()
	left, err := exec.CommandContext(ctx, "/bin/sh", "-c", "(exit 0) >/dev/null & echo $!").Output()
	if err != nil {
		return fmt.Errorf("run a command that leaves a process behind: %w", err)
	}
	entry := filepath.Join(proc, strings.TrimSpace(string(left)), "stat")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		stat, err := os.ReadFile(entry)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			cancel()
			return <-ended
		}
		select {
		case <-tick.C:
		case err := <-ended:
			return fmt.Errorf("the process is left behind: %s; the sidecar has ended: %w", stat, err)
		}
	}
}

// A container without a shared PID namespace has the sidecar as PID 1, and no other init.
func TestSidecarThatIsInitLeavesNoZombies(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to make a PID namespace")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sidecar := exec.CommandContext(t.Context(), program)
	sidecar.Env = append(os.Environ(), initEnv+"="+t.TempDir())
	sidecar.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	if out, err := sidecar.CombinedOutput(); errors.Is(err, fs.ErrPermission) || strings.Contains(string(out), "mount proc: "+unix.EPERM.Error()) {
		t.Skipf("needs to make namespaces and to mount a file system: %v %s", err, out)
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
