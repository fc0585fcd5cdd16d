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

func (u *Updates) faults() []func(context.Context, string) error {
	return []func(context.Context, string) error{u.killSidecar, u.fillDisk, u.killApp, u.limit}
}

// killSidecar kills the sidecar at any moment of an update, or between two.
func (u *Updates) killSidecar(ctx context.Context, node string) error {
	return u.kill(ctx, node, sidecarName, sidecarName, entry.KindSidecarKill)
}

// killApp kills the process that is signalled.
func (u *Updates) killApp(ctx context.Context, node string) error {
	return u.kill(ctx, node, appName, "testapp", entry.KindWatchedKill)
}

func (u *Updates) kill(ctx context.Context, node, container, program, kind string) error {
	pod, err := u.running(ctx, node)
	if err != nil {
		return err
	}
	pid, err := cluster.Process(containerID(pod, container), program)
	if err != nil {
		return err
	}
	if err := cluster.Pause(ctx, time.Duration(u.choice.Int64N(int64(time.Second)))); err != nil {
		return err
	}
	begin, ctx := time.Now(), context.WithoutCancel(ctx)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", container, err)
	}
	how, err := u.revive(ctx, pod, container)
	return errors.Join(err, u.journal.Fault(entry.Fault{Kind: kind, Node: node, Detail: how, Begin: begin}))
}

// revive waits until the container has been restarted. Where kubelet backs off from it the pod is replaced, as by a user.
func (u *Updates) revive(ctx context.Context, before *corev1.Pod, container string) (how string, err error) {
	const patience = 8 * time.Second
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
func (u *Updates) fillDisk(ctx context.Context, node string) error {
	const length = 5 * time.Second
	pod, err := u.running(ctx, node)
	if err != nil {
		return err
	}
	pid, err := cluster.Process(containerID(pod, sidecarName), sidecarName)
	if err != nil {
		return err
	}
	begin := time.Now()
	name := filepath.Join("/proc", strconv.Itoa(pid), "root", filesMount, "filler")
	filler, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("fill disk: %w", err)
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = filler.Write(block)
	}
	_ = cluster.Pause(ctx, length)
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(fmt.Errorf("fill disk: %w", err), filler.Close(), os.Remove(name))
	}
	// The process, and with it the path to the volume, may have gone meanwhile; the open file is there.
	err = errors.Join(filler.Truncate(0), filler.Close())
	_ = os.Remove(name)
	return errors.Join(err, u.journal.Fault(entry.Fault{Kind: entry.KindDiskFull, Node: node, Begin: begin}))
}

// limit takes file descriptors and processes from the sidecar. It goes on: it starts no program.
func (u *Updates) limit(ctx context.Context, node string) error {
	const (
		length  = 8 * time.Second
		files   = 64
		threads = 3 // more than there are
	)
	pod, err := u.running(ctx, node)
	if err != nil {
		return err
	}
	pid, err := cluster.Process(containerID(pod, sidecarName), sidecarName)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files}, nil); err != nil {
		return fmt.Errorf("limit files: %w", err)
	}
	restore, err := limitProcesses(pid, threads)
	if err != nil {
		return err
	}
	_ = cluster.Pause(ctx, length)
	if err := restore(); err != nil {
		return err
	}
	return u.journal.Fault(entry.Fault{Kind: entry.KindSidecarLimit, Node: node, Detail: fmt.Sprintf("%d files, %d more threads", files, threads), Begin: begin})
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
		return u.cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "updates-" + node}, &pod) == nil && cluster.Ready(&pod)
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
