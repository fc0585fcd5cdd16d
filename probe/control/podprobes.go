// Package control reconciles PodProbeMarkers. One controller writes the NodePodProbe of each node, one the labels,
// annotations and conditions that pods get from probe results, and one the status of each marker. Package podprobe
// decides what to write.
//
// All reads are from caches, apart from pods that are too large for the cache, and each controller computes the whole of its object.
// So neither the order of events matters nor what happened while no manager ran.
package control

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
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/probe/control/compiled"
	"github.com/refit-project/refit/probe/podprobe"
)

// Config holds what the package needs from the manager. The index cache.PodsByNode must exist.
type Config struct {
	Workers int // number of nodes, and of pods, reconciled concurrently
	// EmptyNodePodProbes creates a NodePodProbe for every node, like OpenKruise, and not only for nodes with pods to
	// probe.
	EmptyNodePodProbes bool

	Nodes    cache.Nodes
	Clock    func() time.Time // the API server's time
	Recorder events.EventRecorder
	Metrics  prometheus.Registerer
	Guard    *guard.Guard // catches panics while one object is handled
	Logger   *slog.Logger
}

// ByObject returns the cache options of the types that only this package reads.
func ByObject() cache.ByObject {
	// A NodePodProbe can have a megabyte, is read for each of its pods, and is never changed in place.
	return cache.ByObject{&v1alpha1.NodePodProbe{}: ctrlcache.ByObject{UnsafeDisableDeepCopy: new(true)}}
}

// Add adds the controllers to a manager that has not been started yet.
func Add(mgr ctrl.Manager, cfg Config) error {
	a := &api{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), nodes: cfg.Nodes, recorder: cfg.Recorder, now: cfg.Clock, guard: cfg.Guard, log: cfg.Logger,
		compiled: compiled.Markers{Guard: cfg.Guard},
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
	live     client.Reader // reads from the API server
	nodes    cache.Nodes
	recorder events.EventRecorder
	now      func() time.Time
	writes   *prometheus.CounterVec
	guard    *guard.Guard
	log      *slog.Logger
	compiled compiled.Markers
	omitted  omittedPods
	// rewrite enqueues a pod, so that its fields are computed again.
	rewrite func(pod types.NamespacedName)
}

// listMarkers returns the markers of a namespace, or of all namespaces if it is empty.
func (a *api) listMarkers(ctx context.Context, namespace string) ([]podprobe.Marker, error) {
	var list v1alpha1.PodProbeMarkerList
	if err := a.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list markers: %w", err)
	}
	return a.compiled.Compile(list.Items, namespace == ""), nil
}

// listPods returns pods from the cache. They must not be changed.
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

// nodeKind reports whether a node exists, and whether it is a virtual node. A node that is being deleted exists: with a
// finalizer, for example of Karpenter, it stays until its pods have gone, which may depend on their probe results.
func (a *api) nodeKind(ctx context.Context, name string) (exists, virtual bool, err error) {
	node, err := a.nodes.Find(ctx, name)
	if err != nil || node == nil {
		return false, false, err
	}
	return true, podprobe.VirtualNode(node.Labels), nil
}

// written counts a write, and wraps its error with what was being done.
func (a *api) written(resource, doing string, err error) error {
	a.writes.WithLabelValues(resource).Inc()
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
