package main

import (
	"context"
	"errors"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/audit"
	"github.com/refit-project/refit/test/bench/probe/usage"
)

// sample is what was used in a window. CPU is in processors: 1 is one of them all the time.
type sample struct {
	Window  time.Duration `json:"windowNanoseconds"`
	Daemon  float64       `json:"daemonCPU"`
	Kubelet float64       `json:"kubeletCPU"`
	// Runtime is containerd and its shims with the commands they have run.
	Runtime float64 `json:"runtimeCPU"`
	// DaemonWrites and ManagerWrites are API writes a minute, Events apart.
	DaemonWrites  float64 `json:"daemonWritesPerMinute"`
	ManagerWrites float64 `json:"managerWritesPerMinute"`
	EventWrites   float64 `json:"eventWritesPerMinute"`
	RSS           uint64  `json:"daemonRSSBytes"`
	// Probes are those that the daemon made, and how late they started.
	Probes  uint64        `json:"probes"`
	LateP50 time.Duration `json:"lateP50Nanoseconds"`
	LateP99 time.Duration `json:"lateP99Nanoseconds"`
}

// measure lets a window pass.
func (b *bench) measure(ctx context.Context, window time.Duration) (sample, error) {
	c := b.cluster
	logged, err := audit.Size(c.AuditLog())
	if err != nil {
		return sample{}, err
	}
	lateBefore, err := c.lateness(ctx)
	if err != nil {
		return sample{}, err
	}
	before, err := c.watched.CPU()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	if err := wait.For(ctx, window); err != nil {
		return sample{}, err
	}
	took := time.Since(began)
	after, err := c.watched.CPU()
	if err != nil {
		return sample{}, err
	}
	late, err := c.lateness(ctx)
	if err != nil {
		return sample{}, err
	}
	s := sample{
		Window: took, Daemon: (after.Daemon - before.Daemon) / took.Seconds(), Kubelet: (after.Kubelet - before.Kubelet) / took.Seconds(),
		Runtime: (after.Runtime - before.Runtime) / took.Seconds(), Probes: late.GetSampleCount() - lateBefore.GetSampleCount(),
		LateP50: usage.Quantile(lateBefore, late, 0.50), LateP99: usage.Quantile(lateBefore, late, 0.99),
	}
	process, err := procfs.NewProc(c.daemon.PID)
	if err != nil {
		return s, err
	}
	status, err := process.NewStatus()
	if err != nil {
		return s, err
	}
	s.RSS = status.VmRSS
	return s, s.count(c.AuditLog(), logged, took)
}

// count reads the audit log from an offset on.
func (s *sample) count(path string, offset int64, window time.Duration) error {
	writes, err := audit.Since(path, offset)
	perMinute := float64(time.Minute) / float64(window)
	for _, write := range writes {
		switch {
		case write.IsEvent():
			s.EventWrites += perMinute
		case write.Resource == "leases": // of the managers' election, whatever happens
		case write.Who == "refit-daemon":
			s.DaemonWrites += perMinute
		case write.Who == "refit-manager":
			s.ManagerWrites += perMinute
		}
	}
	return err
}

// lateness is the daemon's histogram of how late probes started.
func (c *cluster) lateness(ctx context.Context) (*dto.Histogram, error) {
	families, err := c.daemon.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	found := families["refit_probe_lateness_seconds"].GetMetric()
	if len(found) != 1 {
		return nil, errors.New("the daemon has no metric refit_probe_lateness_seconds")
	}
	return found[0].GetHistogram(), nil
}
