package fakenodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/procfs"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/test/bench/testcluster"
)

// Manager is refit-manager as a process: alone, so that what it costs is all its own.
type Manager struct {
	*Process
	metrics, health string // URLs
}

// manifest of refit-manager, from the root of the repository.
const manifest = "deploy/manager/30-deployment.yaml"

// environment is what refit-manager is installed with: its soft memory limit for the garbage collector.
func environment() ([]string, error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return nil, err
	}
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal(text, &deployment); err != nil {
		return nil, fmt.Errorf("%s: %w", manifest, err)
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == "GOMEMLIMIT" {
				return []string{variable.Name + "=" + variable.Value}, nil
			}
		}
	}
	return nil, fmt.Errorf("%s: no GOMEMLIMIT", manifest)
}

// startManager starts a refit-manager whose own namespace is that one, and waits until it is ready.
func startManager(ctx context.Context, program, namespace string) (*Manager, error) {
	m := &Manager{metrics: "http://127.0.0.1:18080/metrics", health: "http://127.0.0.1:18081/readyz"}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	m.Process, err = Start(ctx, env, program, "--kubeconfig="+os.Getenv("KUBECONFIG"), "--leader-elect=false", "--namespace="+namespace,
		"--cert-secret="+certificateSecret, "--webhook-port=19443", "--metrics-addr=127.0.0.1:18080", "--health-addr=127.0.0.1:18081")
	if err != nil {
		return nil, err
	}
	err = testcluster.Await(ctx, testcluster.PollInterval, time.Minute, "refit-manager to be ready", func(ctx context.Context) (bool, error) {
		return healthy(ctx, m.health), m.Alive()
	})
	if err != nil {
		err = errors.Join(err, m.Tail())
		m.Stop()
		return nil, err
	}
	return m, nil
}

func healthy(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// Reading is what the manager has done and cost so far.
type Reading struct {
	Writes, Reads int // requests to the API server; watches are reads
	CPU           time.Duration
	RSS, Peak     uint64 // bytes
	Anonymous     uint64 // bytes: RssAnon
}

// Read reads it from the metrics and from /proc.
func (m *Manager) Read(ctx context.Context) (Reading, error) {
	var r Reading
	families, err := testcluster.Metrics(ctx, http.DefaultClient, m.metrics, "")
	if err != nil {
		return r, err
	}
	for _, metric := range families["rest_client_requests_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() != "method" {
				continue
			}
			if label.GetValue() == http.MethodGet {
				r.Reads += int(metric.GetCounter().GetValue())
			} else {
				r.Writes += int(metric.GetCounter().GetValue())
			}
		}
	}
	process, err := procfs.NewProc(m.command.Process.Pid)
	if err != nil {
		return r, err
	}
	stat, err := process.Stat()
	if err != nil {
		return r, err
	}
	status, err := process.NewStatus()
	r.CPU, r.RSS, r.Peak, r.Anonymous = time.Duration(stat.CPUTime()*float64(time.Second)), status.VmRSS, status.VmHWM, status.RssAnon
	return r, err
}
