// Package usage reads what the programs of a node use: CPU time from /proc, delays from histograms.
package usage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/signal"
)

// Processes of a node.
type Processes struct {
	daemon, kubelet, containerd int
	shimSpace                   string // mount namespace of containerd and its shims
}

// Find finds the other processes of a node of the cluster in the folder state.
func Find(ctx context.Context, state, node string, daemon int) (Processes, error) {
	p := Processes{daemon: daemon}
	all, err := signal.New("/proc")
	if err != nil {
		return p, err
	}
	folder := regexp.QuoteMeta(filepath.Join(state, "nodes", node)) // another cluster may be on the machine
	for _, wanted := range []struct {
		pid      *int
		selector signal.Selector
	}{
		{&p.kubelet, signal.Selector{CmdlineRegexp: `^\S*/kube kubelet .*` + folder + `/`}},
		{&p.containerd, signal.Selector{CmdlineRegexp: `^\S*/containerd --config=` + folder + `/`}},
	} {
		found, err := all.Find(ctx, wanted.selector)
		if err != nil {
			return p, fmt.Errorf("find the process of %s: %w", wanted.selector, err)
		}
		*wanted.pid = found[0].PID
	}
	p.shimSpace, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", p.containerd))
	return p, err
}

// CPU is the time that processes have used, in seconds.
type CPU struct{ Daemon, Kubelet, Runtime float64 }

// CPU reads the time used so far.
func (p Processes) CPU() (CPU, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return CPU{}, err
	}
	all, err := fs.AllProcs()
	if err != nil {
		return CPU{}, fmt.Errorf("list processes: %w", err)
	}
	var used CPU
	if used.Daemon, err = cpuClock(p.daemon); err != nil {
		return used, fmt.Errorf("CPU time of refit-daemon: %w", err)
	}
	if used.Kubelet, err = cpuClock(p.kubelet); err != nil {
		return used, fmt.Errorf("CPU time of kubelet: %w", err)
	}
	for _, process := range all {
		stat, err := process.Stat()
		if err != nil {
			continue // gone since it was listed
		}
		if process.PID == p.containerd || strings.HasPrefix(stat.Comm, "containerd-shim") && p.inShimSpace(process.PID) {
			const ticks = 100 // USER_HZ (proc_pid_stat(5)), which is 100 on every Linux of today
			used.Runtime += stat.CPUTime() + float64(stat.CUTime+stat.CSTime)/ticks
		}
	}
	return used, nil
}

// cpuClock is the CPU time of a process in seconds, to the nanosecond: its clock by clock_getcpuclockid(3), whose
// number is made as in the C library. The times of proc_pid_stat(5) are in steps of 10 ms.
func cpuClock(pid int) (float64, error) {
	const cpuclockSched = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|cpuclockSched), &t); err != nil {
		return 0, fmt.Errorf("clock of process %d, which may have been restarted: %w", pid, err)
	}
	return time.Duration(t.Nano()).Seconds(), nil
}

func (p Processes) inShimSpace(pid int) bool {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return err == nil && space == p.shimSpace
}
