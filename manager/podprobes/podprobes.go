package manager

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/podprobe"
)

// byNode is the index of pods by their node.
const byNode = "spec.nodeName"

// probes is what the three controllers of pod probes have in common. All work is done from caches, and each looks at
// the whole of its object: what happened while no manager ran, or in what order, makes no difference.
type probes struct {
	client   client.Client // reads from the cache
	live     client.Reader
	recorder events.EventRecorder
	now      func() time.Time // of the API server
	writes   *prometheus.CounterVec
	log      *slog.Logger
}

// addPodProbes looks after PodProbeMarkers: one controller writes the NodePodProbe of each node, one the marks of each
// pod, one the status of each marker.
func addPodProbes(ctx context.Context, mgr ctrl.Manager, cfg Config, now func() time.Time) error {
	p := &probes{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(Name), now: now, log: cfg.Logger,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_manager_podprobe_writes_total",
			Help: "Writes to the API for PodProbeMarkers, by resource: nodepodprobes, pods, podprobemarkers.",
		}, []string{"resource"}),
	}
	if err := metrics.Registry.Register(p.writes); err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, byNode, nodeOfPod); err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	if err := addNodeProbes(mgr, cfg, p); err != nil {
		return err
	}
	if err := addPodMarks(mgr, cfg, p); err != nil {
		return err
	}
	return addMarkerStatus(mgr, p)
}

func nodeOfPod(object client.Object) []string {
	if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// markers of a namespace; of all when it is empty.
func (p *probes) markers(ctx context.Context, namespace string) ([]podprobe.Marker, error) {
	var list v1alpha1.PodProbeMarkerList
	if err := p.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list markers: %w", err)
	}
	return podprobe.Compile(list.Items), nil
}

// pods that are in the cache, not to be changed.
func (p *probes) pods(ctx context.Context, opts ...client.ListOption) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := p.client.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// virtual reports whether a node is there, and whether it is a virtual one.
func (p *probes) virtual(ctx context.Context, node string) (exists, virtual bool, err error) {
	found, err := findNode(ctx, node, p.client, p.live)
	if err != nil || found == nil {
		return false, false, err
	}
	return found.DeletionTimestamp == nil, podprobe.Virtual(found.Labels), nil
}

// wrote counts, and names an error.
func (p *probes) wrote(resource, what string, err error) error {
	p.writes.WithLabelValues(resource).Inc()
	return named(what, err)
}
