// Package meter reads what refit-daemon costs: its process from /proc, its CRI calls from its metrics, its and the
// manager's writes from the audit log.
package meter

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/audit"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const (
	// settle is what the last Events and the manager's last write may take after the requests have ended.
	settle   = 2 * time.Second
	criCalls = "refit_cri_call_duration_seconds"
)

// notPerRequest are CRI calls that the daemon makes whether there are requests or not.
var notPerRequest = map[string]bool{"Version": true, "GetContainerEvents": true}

// Meter reads what one daemon costs.
type Meter struct {
	cluster *testcluster.Cluster
	daemon  *testcluster.Daemon
	cpuFile string // of the whole cluster
}

// Reading of the meter's counters.
type Reading struct {
	cpu      time.Duration
	calls    map[string]int // by CRI method
	auditEnd int64
}

// Cost of the requests of one scenario.
type Cost struct {
	Requests int `json:"requests"`
	// Writes and Calls of all requests, by who did what, and by CRI method.
	Writes map[string]int `json:"apiWrites"`
	Calls  map[string]int `json:"criCalls"`
	// WritesEach counts writes to requests and pods, EventsEach to Events, CallsEach CRI calls, per request.
	WritesEach float64 `json:"apiWritesPerRequest"`
	EventsEach float64 `json:"eventsPerRequest"`
	CallsEach  float64 `json:"criCallsPerRequest"`
	// CPU of the daemon from the begin of the scenario to its end, the floor's turns included.
	CPU time.Duration `json:"cpuNanoseconds"`
	// RSS of the daemon at the end, and the highest since the begin, in bytes.
	RSS     uint64 `json:"rssBytes"`
	PeakRSS uint64 `json:"peakRSSBytes"`
}

// New finds the daemon of the node.
func New(ctx context.Context, cluster *testcluster.Cluster) (*Meter, error) {
	daemon, err := cluster.Daemon(ctx)
	if err != nil {
		return nil, err
	}
	cpuFile, err := cpuOf(daemon.PID)
	return &Meter{cluster: cluster, daemon: daemon, cpuFile: cpuFile}, err
}

// Begin reads the counters and has the kernel forget the highest RSS so far.
func (m *Meter) Begin(ctx context.Context) (Reading, error) {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", m.daemon.PID), []byte("5"), 0o200); err != nil {
		return Reading{}, fmt.Errorf("reset the peak of RSS: %w", err)
	}
	return m.read(ctx)
}

func (m *Meter) read(ctx context.Context) (Reading, error) {
	process, err := procfs.NewProc(m.daemon.PID)
	if err != nil {
		return Reading{}, fmt.Errorf("read the daemon's process: %w", err)
	}
	stat, err := process.Stat()
	if err != nil {
		return Reading{}, fmt.Errorf("read the daemon's process: %w", err)
	}
	calls, err := m.calls(ctx)
	if err != nil {
		return Reading{}, err
	}
	end, err := audit.Size(m.cluster.AuditLog())
	return Reading{cpu: time.Duration(stat.CPUTime() * float64(time.Second)), calls: calls, auditEnd: end}, err
}

// End says what so many requests have cost since the reading.
func (m *Meter) End(ctx context.Context, since Reading, requests int) (Cost, error) {
	if err := wait.For(ctx, settle); err != nil {
		return Cost{}, err
	}
	now, err := m.read(ctx)
	if err != nil {
		return Cost{}, err
	}
	writes, err := audit.Since(m.cluster.AuditLog(), since.auditEnd)
	if err != nil {
		return Cost{}, err
	}
	spent := Cost{Requests: requests, Calls: map[string]int{}, Writes: map[string]int{}, CPU: now.cpu - since.cpu}
	objects, events := 0, 0
	for _, write := range writes {
		switch {
		case write.Namespace != m.cluster.Namespace:
			continue
		case write.IsEvent():
			events++
		default:
			objects++
		}
		spent.Writes[write.String()]++
	}
	total := 0
	for method, n := range now.calls {
		if n -= since.calls[method]; n > 0 && !notPerRequest[method] {
			spent.Calls[method] = n
			total += n
		}
	}
	if requests > 0 {
		spent.WritesEach = float64(objects) / float64(requests)
		spent.EventsEach = float64(events) / float64(requests)
		spent.CallsEach = float64(total) / float64(requests)
	}
	spent.RSS, spent.PeakRSS, err = m.memory()
	return spent, err
}

func (m *Meter) memory() (rss, peak uint64, err error) {
	process, err := procfs.NewProc(m.daemon.PID)
	if err != nil {
		return 0, 0, fmt.Errorf("read the daemon's memory: %w", err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0, 0, fmt.Errorf("read the daemon's memory: %w", err)
	}
	return status.VmRSS, status.VmHWM, nil
}

func (m *Meter) calls(ctx context.Context) (map[string]int, error) {
	families, err := m.daemon.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	calls := map[string]int{}
	for _, metric := range families[criCalls].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "method" {
				calls[label.GetValue()] = int(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return calls, nil
}

// ClusterCPU is the CPU time of the whole cluster so far.
func (m *Meter) ClusterCPU() (time.Duration, error) { return readCPU(m.cpuFile) }
