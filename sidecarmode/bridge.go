package sidecarmode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
)

// errNoAPI means that the pod has no service account.
var errNoAPI = errors.New("no API server: the pod has no service account token")

// patcher implements output.Patcher for the API.
type patcher struct{ client *ownpod.Client }

func reference(object output.Object, subresource string) ownpod.Reference {
	return ownpod.Reference{
		Group: object.Group, Version: object.Version, Resource: object.Resource,
		Namespace: object.Namespace, Name: object.Name, Subresource: subresource,
	}
}

// Read implements output.Patcher.
func (p patcher) Read(ctx context.Context, object output.Object) (map[string]any, error) {
	if p.client == nil {
		return nil, errNoAPI
	}
	b, err := p.client.Get(ctx, reference(object, ""))
	if errors.Is(err, ownpod.ErrForbidden) {
		return nil, fmt.Errorf("%w: %w", output.ErrForbidden, err)
	}
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := json.Unmarshal(b, &content); err != nil {
		return nil, fmt.Errorf("decode %s: %w", object, err)
	}
	return content, nil
}

// Patch implements output.Patcher.
func (p patcher) Patch(ctx context.Context, patch output.Patch) error {
	if p.client == nil {
		return errNoAPI
	}
	_, err := p.client.Patch(ctx, reference(patch.Object, patch.Subresource), string(patch.Type), patch.Body)
	return err
}

// recorder implements output.Recorder for Events.
type recorder struct{ events *ownpod.Events }

// Event implements output.Recorder.
func (r recorder) Event(about output.Object, state result.State, reason, message string) {
	if r.events == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if state != result.Succeeded {
		kind = corev1.EventTypeWarning
	}
	r.events.Event(corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: about.Namespace, Name: about.Name, UID: types(about.UID),
	}, kind, reason, message)
}

// meter has the gauges that results are stored in. It describes none, because they depend on the configuration.
type meter struct {
	mu     sync.Mutex
	values map[string]float64
}

func newMeter() *meter { return &meter{values: map[string]float64{}} }

// Set implements output.Meter.
func (m *meter) Set(gauge string, value float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[gauge] = value
}

// Clear implements output.Meter.
func (m *meter) Clear(gauge string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, gauge)
}

// Describe implements prometheus.Collector.
func (m *meter) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *meter) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	values := maps.Clone(m.values)
	m.mu.Unlock()
	for name, value := range values {
		desc := prometheus.NewDesc(name, "Result of a probe.", nil, nil)
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
}
