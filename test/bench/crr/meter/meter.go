// Package meter reads what refit-daemon costs: its process from /proc, its CRI calls from its metrics, its and the
// manager's writes from the audit log.
package meter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/signal"
)

const (
	// settle is what the last Events and the manager's last write may take after the requests have ended.
	settle = 2 * time.Second
	// tokenLife of the token that reads the daemon's metrics.
	tokenLife = 3 * time.Hour
	criCalls  = "refit_cri_call_duration_seconds"
)

// notPerRequest are CRI calls that the daemon makes whether there are requests or not.
var notPerRequest = map[string]bool{"Version": true, "GetContainerEvents": true}

// Config of a Meter.
type Config struct {
	API client.Client
	// Node of the daemon.
	Node string
	// Namespace of the benchmark, and name of the service account in it that may read the daemon's metrics.
	Namespace string
	// AuditLog is the file of the API server's audit log.
	AuditLog string
}

// Meter reads what one daemon costs.
type Meter struct {
	config  Config
	pid     int
	metrics string // URL
	cpuFile string // of the whole cluster
	token   string
	http    *http.Client
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
func New(ctx context.Context, config Config) (*Meter, error) {
	daemons := &corev1.PodList{}
	err := config.API.List(ctx, daemons, client.InNamespace("refit-system"), client.MatchingLabels{"app.kubernetes.io/name": "refit-daemon"},
		client.MatchingFields{"spec.nodeName": config.Node})
	if err != nil {
		return nil, fmt.Errorf("find refit-daemon: %w", err)
	}
	if len(daemons.Items) != 1 {
		return nil, fmt.Errorf("find refit-daemon: %d pods of it on %s", len(daemons.Items), config.Node)
	}
	pod := &daemons.Items[0]
	if len(pod.Status.ContainerStatuses) == 0 {
		return nil, fmt.Errorf("find refit-daemon: pod %s has no status", pod.Name)
	}
	id, err := identity.ParseContainerID(pod.Status.ContainerStatuses[0].ContainerID)
	if err != nil {
		return nil, fmt.Errorf("find refit-daemon: %w", err)
	}
	processes, err := signal.New("/proc")
	if err != nil {
		return nil, err
	}
	found, err := processes.Find(ctx, signal.Selector{Container: id})
	if err != nil {
		return nil, fmt.Errorf("find the process of refit-daemon: %w", err)
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife / time.Second))}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: config.Namespace, Namespace: config.Namespace}}
	if err := config.API.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("ask for a token: %w", err)
	}
	cgroups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", found[0].PID))
	if err != nil {
		return nil, fmt.Errorf("find the cluster's cgroup: %w", err)
	}
	cpuFile, err := cpuOf(string(cgroups))
	if err != nil {
		return nil, err
	}
	return &Meter{
		config: config, pid: found[0].PID, cpuFile: cpuFile, token: token.Status.Token,
		metrics: "https://" + pod.Status.PodIP + ":10223/metrics",
		http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // self-signed, in a test cluster
		}},
	}, nil
}

// Begin reads the counters and has the kernel forget the highest RSS so far.
func (m *Meter) Begin(ctx context.Context) (Reading, error) {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", m.pid), []byte("5"), 0o200); err != nil {
		return Reading{}, fmt.Errorf("reset the peak of RSS: %w", err)
	}
	return m.read(ctx)
}

func (m *Meter) read(ctx context.Context) (Reading, error) {
	process, err := procfs.NewProc(m.pid)
	if err != nil {
		return Reading{}, fmt.Errorf("read the daemon's process: %w", err)
	}
	stat, err := process.Stat()
	if err != nil {
		return Reading{}, fmt.Errorf("read the daemon's process: %w", err)
	}
	calls, err := m.calls(ctx)
	if err != nil {
		return Reading{}, fmt.Errorf("read the daemon's metrics: %w", err)
	}
	log, err := os.Stat(m.config.AuditLog)
	if err != nil {
		return Reading{}, fmt.Errorf("look at the audit log: %w", err)
	}
	return Reading{cpu: time.Duration(stat.CPUTime() * float64(time.Second)), calls: calls, auditEnd: log.Size()}, nil
}

// End says what so many requests have cost since the reading.
func (m *Meter) End(ctx context.Context, since Reading, requests int) (Cost, error) {
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return Cost{}, context.Cause(ctx)
	}
	now, err := m.read(ctx)
	if err != nil {
		return Cost{}, err
	}
	spent := Cost{Requests: requests, Calls: map[string]int{}, CPU: now.cpu - since.cpu}
	if spent.Writes, err = writesSince(m.config.AuditLog, m.config.Namespace, since.auditEnd); err != nil {
		return Cost{}, err
	}
	total := 0
	for method, n := range now.calls {
		if n -= since.calls[method]; n > 0 && !notPerRequest[method] {
			spent.Calls[method] = n
			total += n
		}
	}
	if requests > 0 {
		objects, events := splitWrites(spent.Writes)
		spent.WritesEach = float64(objects) / float64(requests)
		spent.EventsEach = float64(events) / float64(requests)
		spent.CallsEach = float64(total) / float64(requests)
	}
	spent.RSS, spent.PeakRSS, err = m.memory()
	return spent, err
}

func (m *Meter) memory() (rss, peak uint64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		return 0, 0, fmt.Errorf("read the daemon's memory: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		for name, bytes := range map[string]*uint64{"VmRSS:": &rss, "VmHWM:": &peak} {
			text, ok := strings.CutPrefix(line, name)
			if !ok {
				continue
			}
			kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
			if err != nil {
				return 0, 0, fmt.Errorf("read the daemon's memory: %w", err)
			}
			*bytes = kib << 10
		}
	}
	return rss, peak, nil
}

func (m *Meter) calls(ctx context.Context) (map[string]int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.metrics, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+m.token)
	response, err := m.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
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
