package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"

	"github.com/refit-project/refit/internal/wait"
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
	audit := filepath.Join(c.state, "logs", "audit.log")
	log, err := os.Stat(audit)
	if err != nil {
		return sample{}, fmt.Errorf("look at the audit log: %w", err)
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
	process, err := procfs.NewProc(c.watched.Daemon)
	if err != nil {
		return s, err
	}
	status, err := process.NewStatus()
	if err != nil {
		return s, err
	}
	s.RSS = status.VmRSS
	return s, s.count(audit, log.Size(), took)
}

// count reads the audit log from an offset on.
func (s *sample) count(path string, offset int64, window time.Duration) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	perMinute := float64(time.Minute) / float64(window)
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what has no end is still being written
		}
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		who, resource, err := usage.Writer(line)
		switch {
		case err != nil:
			return err
		case resource == "events":
			s.EventWrites += perMinute
		case resource == "leases": // of the managers' election, whatever happens
		case who == "refit-daemon":
			s.DaemonWrites += perMinute
		case who == "refit-manager":
			s.ManagerWrites += perMinute
		}
	}
}

// lateness is the daemon's histogram of how late probes started.
func (c *cluster) lateness(ctx context.Context) (*dto.Histogram, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.daemon.Status.PodIP+":10223/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the daemon's metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the daemon's metrics: %s", response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the daemon's metrics: %w", err)
	}
	found := families["refit_probe_lateness_seconds"].GetMetric()
	if len(found) != 1 {
		return nil, errors.New("the daemon has no metric refit_probe_lateness_seconds")
	}
	return found[0].GetHistogram(), nil
}
