// Package podprobes reconciles PodProbeMarkers: one controller writes the NodePodProbe of each node, one the labels,
// annotations and conditions that pods get from probe results, one the status of each marker. What to write is decided in
// package podprobe.
//
// All reads are from caches, and each controller computes the whole of its object, so the order of events does not matter,
// nor what happened while no manager ran.
package podprobes

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/manager/cache"
	"github.com/refit-project/refit/manager/podprobes/compiled"
	"github.com/refit-project/refit/manager/podprobes/omitted"
	"github.com/refit-project/refit/podprobe"
)

// conflictDelay lets the cache catch up with the write that came before ours.
const conflictDelay = 500 * time.Millisecond

// Config is what the package needs from the manager. The index cache.PodsByNode has to exist.
type Config struct {
	Workers int // nodes, and pods, reconciled at a time
	// EmptyNodePodProbes makes a NodePodProbe for every node, as OpenKruise does, and not only where there is something to
	// probe.
	EmptyNodePodProbes bool

	Nodes    cache.Nodes
	Clock    func() time.Time // the API server's time
	Recorder events.EventRecorder
	Metrics  prometheus.Registerer
	Logger   *slog.Logger
}

// ByObject are the cache options of the types that only this package reads.
func ByObject() cache.ByObject {
	// A NodePodProbe can be a megabyte, is read for each pod that it names, and never changed in place.
	return cache.ByObject{&v1alpha1.NodePodProbe{}: ctrlcache.ByObject{UnsafeDisableDeepCopy: new(true)}}
}

// Add adds the controllers to a manager that has not been started.
func Add(mgr ctrl.Manager, cfg Config) error {
	a := &api{
		client: mgr.GetClient(), nodes: cfg.Nodes, recorder: cfg.Recorder, now: cfg.Clock, log: cfg.Logger,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_manager_podprobe_writes_total",
			Help: "Writes to the API server for PodProbeMarkers, by resource: nodepodprobes, pods, podprobemarkers.",
		}, []string{"resource"}),
	}
	if err := cfg.Metrics.Register(a.writes); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if err := addNodes(mgr, cfg, a); err != nil {
		return fmt.Errorf("set up NodePodProbes: %w", err)
	}
	if err := addPods(mgr, cfg, a); err != nil {
		return fmt.Errorf("set up probe results of pods: %w", err)
	}
	if err := addMarkers(mgr, a); err != nil {
		return fmt.Errorf("set up status of PodProbeMarkers: %w", err)
	}
	return nil
}

// api is the access to the API server that the three controllers share.
type api struct {
	client   client.Client // reads from the cache
	nodes    cache.Nodes
	recorder events.EventRecorder
	now      func() time.Time
	writes   *prometheus.CounterVec
	log      *slog.Logger
	compiled compiled.Markers
	omitted  omitted.Pods
	// rewrite has the fields of a pod computed again.
	rewrite func(pod types.NamespacedName)
}

// listMarkers of a namespace; of all namespaces when it is empty.
func (a *api) listMarkers(ctx context.Context, namespace string) ([]podprobe.Marker, error) {
	var list v1alpha1.PodProbeMarkerList
	if err := a.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list markers: %w", err)
	}
	return a.compiled.Compile(list.Items, namespace == ""), nil
}

// listPods returns pods of the cache, which must not be changed.
func (a *api) listPods(ctx context.Context, opts ...client.ListOption) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := a.client.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// nodeKind reports whether a node exists, and whether it is a virtual one. One that is being deleted exists: with a finalizer, as of
// Karpenter, it stays until its pods have gone, which may wait for what a probe says of them.
func (a *api) nodeKind(ctx context.Context, name string) (exists, virtual bool, err error) {
	node, err := a.nodes.Find(ctx, name)
	if err != nil || node == nil {
		return false, false, err
	}
	return true, podprobe.VirtualNode(node.Labels), nil
}

// written counts a write, and adds to its error what was being done.
func (a *api) written(resource, doing string, err error) error {
	a.writes.WithLabelValues(resource).Inc()
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
