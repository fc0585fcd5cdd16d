package updates

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/test/chaos/cluster"
)

// starve gives the sidecar the least priority, beside processes in its cgroup that fork all the time.
func starve(ctx context.Context, _ *corev1.Pod, pid int) (string, error) {
	const (
		length  = 8 * time.Second
		least   = 19 // nice(2)
		forking = 4
	)
	if err := setPriority(pid, least); err != nil {
		return "", err
	}
	folder, err := cluster.Cgroup(pid, "cpu")
	if err != nil {
		return "", errors.Join(err, setPriority(pid, 0))
	}
	var forks []*exec.Cmd
	for range forking {
		fork, startErr := forkIn(ctx, folder)
		if startErr != nil {
			err = startErr
			break
		}
		forks = append(forks, fork)
	}
	if err == nil {
		_ = cluster.Pause(ctx, length)
	}
	for _, fork := range forks {
		_ = syscall.Kill(-fork.Process.Pid, syscall.SIGKILL)
		_ = fork.Wait() // killed
	}
	return fmt.Sprintf("nice %d beside %d processes that fork", least, forking), errors.Join(err, setPriority(pid, 0))
}

// forkIn starts a process in a cgroup that starts others, one after the other, and its own process group.
func forkIn(ctx context.Context, folder string) (*exec.Cmd, error) {
	join := `echo $$ > "$0" && while :; do /bin/true; done`
	fork := exec.CommandContext(ctx, "sh", "-c", join, filepath.Join(folder, "cgroup.procs"))
	fork.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := fork.Start(); err != nil {
		return nil, fmt.Errorf("start process that forks: %w", err)
	}
	return fork, nil
}

// setPriority sets the priority of all threads of a process. A thread that is started later has the priority of the thread that starts it.
func setPriority(pid, nice int) error {
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "[0-9]*"))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		if err != nil {
			return err
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("set priority of a thread: %w", err)
		}
	}
	return nil
}
