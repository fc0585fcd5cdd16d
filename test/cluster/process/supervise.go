package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// killAfter is how long a program has to end after SIGTERM. The API server would like a minute.
	killAfter = 5 * time.Second
	// restartAfter is how long a program that ended stays away.
	restartAfter = time.Second
)

// mainRecord is the file that remembers the supervised program, given the one of its supervisor.
func mainRecord(path string) string { return strings.TrimSuffix(path, ".json") + ".main.json" }

// Supervise runs a program and starts it again whenever it ends, as systemd does on a real node and the
// kubelet for a control plane, until the context ends. path is the file that remembers this process.
func Supervise(ctx context.Context, path string, argv []string) error {
	// The kernel ends the program with the thread that started it: nobody else would, were this process
	// killed, and two kubelets on one node would be the result.
	runtime.LockOSThread()
	// An empty folder to run in: kubelet looks for the rotated logs of a container that has no log file by the
	// pattern "*", and removes what it finds. In the root of the machine that is /bin.
	dir := filepath.Join(filepath.Dir(path), "empty")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	for restarts := 0; ; restarts++ {
		// The context asks for a gentle end, see endChild, and CommandContext would kill.
		command := exec.CommandContext(context.WithoutCancel(ctx), argv[0], argv[1:]...)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		command.Dir = dir
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := command.Start(); err != nil {
			return fmt.Errorf("start %s: %w", argv[0], err)
		}
		record, err := recordOf(command.Process.Pid)
		if err != nil {
			return fmt.Errorf("start %s: %w", argv[0], err)
		}
		record.Restarts = restarts
		if err := record.write(mainRecord(path)); err != nil {
			return fmt.Errorf("start %s: %w", argv[0], err)
		}
		ended := make(chan struct{})
		var fault error
		go func() {
			fault = command.Wait()
			close(ended)
		}()
		select {
		case <-ctx.Done():
			return record.endChild(ended)
		case <-ended:
			fmt.Fprintf(os.Stderr, "supervisor: the program ended (%v), starting it again\n", fault)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartAfter):
		}
	}
}

// endChild ends the program and waits for it.
func (r Record) endChild(ended <-chan struct{}) error {
	// A suspended process does not see SIGTERM before it goes on.
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := r.signal(signal); err != nil {
			return err
		}
	}
	select {
	case <-ended:
		return nil
	case <-time.After(killAfter):
	}
	if err := r.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-ended
	return nil
}
