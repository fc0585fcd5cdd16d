package updates

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// fault is something that happens to a process of a pod.
type fault struct {
	kind, container, program string
	// do returns when it is over, with a word on it.
	do func(ctx context.Context, pod *corev1.Pod, pid int) (detail string, err error)
}

// faults come in this order, and again.
func (u *Updates) faults() []fault {
	return []fault{
		{entry.KindSidecarKill, sidecarName, sidecarName, u.killer(sidecarName)},
		{entry.KindDiskFull, sidecarName, sidecarName, fillDisk},
		{entry.KindSidecarLimit, sidecarName, sidecarName, limit},
		{entry.KindWatchedKill, appName, "testapp", u.killer(appName)},
		{entry.KindSidecarNice, sidecarName, sidecarName, starve},
	}
}

// Done reports whether all faults have happened once that are required of a short run.
func (u *Updates) Done() bool {
	return u.calm || u.caused.Load() >= int64(len(u.faults())-1) // the last one is not
}

// cause makes a fault happen on a node, at any moment of an update or between two.
func (u *Updates) cause(ctx context.Context, node string, f fault) error {
	pod, err := u.running(ctx, node)
	if err != nil {
		return err
	}
	pid, err := cluster.Process(containerID(pod, f.container), f.program)
	if err != nil {
		return err
	}
	if err := cluster.Pause(ctx, time.Duration(u.choice.Int64N(int64(time.Second)))); err != nil {
		return err
	}
	begin := time.Now()
	detail, err := f.do(ctx, pod, pid)
	if err != nil {
		return fmt.Errorf("%s: %w", f.kind, err)
	}
	return u.journal.Fault(entry.Fault{Kind: f.kind, Node: node, Detail: detail, Begin: begin})
}

// killer kills the process, and waits until its container runs again.
func (u *Updates) killer(container string) func(context.Context, *corev1.Pod, int) (string, error) {
	return func(ctx context.Context, pod *corev1.Pod, pid int) (string, error) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return "", err
		}
		how, err := u.revive(context.WithoutCancel(ctx), pod, container)
		if err != nil { // killed it was
			return err.Error(), nil //nolint:nilerr // the judge has to know of the kill; the next fault waits for the pod
		}
		return how, nil
	}
}

// revive waits until the container has been restarted. Where kubelet backs off from it the pod is replaced, as by a user.
func (u *Updates) revive(ctx context.Context, before *corev1.Pod, container string) (how string, err error) {
	const patience = 20 * time.Second
	back := func(ctx context.Context) bool {
		var pod corev1.Pod
		return u.cluster.Get(ctx, client.ObjectKeyFromObject(before), &pod) == nil && cluster.Ready(&pod) &&
			containerID(&pod, container) != containerID(before, container)
	}
	if err := cluster.Until(ctx, container+" is back", patience, back); !errors.Is(err, cluster.ErrLate) {
		return "restarted", err
	}
	if err := u.cluster.Remove(ctx, before); err != nil {
		return "", err
	}
	return "replaced", u.cluster.Start(ctx, u.pod(before.Spec.NodeName))
}

// fillDisk leaves no room for another file on the volume, for some updates.
func fillDisk(ctx context.Context, _ *corev1.Pod, pid int) (string, error) {
	const length = 5 * time.Second
	name := filepath.Join("/proc", strconv.Itoa(pid), "root", filesMount, "filler")
	filler, err := os.Create(name)
	if err != nil {
		return "", err
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = filler.Write(block)
	}
	_ = cluster.Pause(ctx, length)
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	// The process, and with it the path to the volume, may have gone meanwhile; the open file is there.
	err = errors.Join(err, filler.Truncate(0), filler.Close())
	_ = os.Remove(name)
	return "", err
}

// limit takes file descriptors and processes from the sidecar. It goes on: it starts no program.
func limit(ctx context.Context, _ *corev1.Pod, pid int) (string, error) {
	const (
		length  = 8 * time.Second
		files   = 64
		threads = 3 // more than there are
	)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files}, nil); err != nil {
		return "", fmt.Errorf("limit files: %w", err)
	}
	restore, err := limitProcesses(pid, threads)
	if err != nil {
		return "", err
	}
	_ = cluster.Pause(ctx, length)
	return fmt.Sprintf("%d files, %d more threads", files, threads), restore()
}

// limitProcesses bounds the cgroup of a process, of version 1 or 2.
func limitProcesses(pid, more int) (restore func() error, err error) {
	folder, err := cluster.Cgroup(pid, "pids")
	if err != nil {
		return nil, err
	}
	now, err := os.ReadFile(filepath.Join(folder, "pids.current"))
	if err != nil {
		return nil, fmt.Errorf("limit processes: %w", err)
	}
	count, err := strconv.Atoi(strings.TrimSpace(string(now)))
	if err != nil {
		return nil, fmt.Errorf("limit processes: %w", err)
	}
	limit := filepath.Join(folder, "pids.max")
	if err := os.WriteFile(limit, []byte(strconv.Itoa(count+more)), 0); err != nil {
		return nil, fmt.Errorf("limit processes: %w", err)
	}
	return func() error {
		if err := os.WriteFile(limit, []byte("max"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("end limit of processes: %w", err)
		}
		return nil
	}, nil
}

// running is the pod of a node, when all of it runs.
func (u *Updates) running(ctx context.Context, node string) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := cluster.Until(ctx, "pod of updates on "+node, cluster.RolloutTime, func(ctx context.Context) bool {
		return u.cluster.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: "updates-" + node}, &pod) == nil && cluster.Ready(&pod)
	})
	return &pod, err
}

func containerID(pod *corev1.Pod, container string) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			return entry.BareID(status.ContainerID)
		}
	}
	return ""
}
