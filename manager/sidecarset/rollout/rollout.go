// Package rollout updates the sidecars of running pods: it keeps the ControllerRevisions of each SidecarSet, observes its
// pods one by one, carries out what the packages of sidecarset decide, and writes the status. Decisions must stay out.
package rollout

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/v1beta1"
)

// Config is what the package needs from the manager.
type Config struct {
	// Namespace is the manager's own, where ControllerRevisions and ImagePullJobs are kept.
	Namespace string
	Workers   int           // SidecarSets reconciled at a time
	Live      client.Reader // the API server, past the cache: pods are updated from what they are now
	// PrePull says that ImagePullJobs are reconciled.
	PrePull  bool
	Clock    func() time.Time // the API server's time
	Recorder events.EventRecorder
	Metrics  prometheus.Registerer
	Logger   *slog.Logger
}

// api is what the parts of the controller share.
type api struct {
	Config
	client client.Client // reads from the cache
	writes *prometheus.CounterVec
	pods   *prometheus.GaugeVec
}

// reconciler reconciles SidecarSets.
type reconciler struct {
	*api

	heard atomic.Int64 // when the last event of a pod has come, in nanoseconds since 1970

	mu   sync.Mutex
	sets map[string]*set
}

// Add adds the controller to a manager that has not been started.
func Add(mgr ctrl.Manager, cfg Config) error {
	r := newReconciler(mgr.GetClient(), cfg)
	for _, metric := range []prometheus.Collector{r.writes, r.pods} {
		if err := cfg.Metrics.Register(metric); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := ctrl.NewControllerManagedBy(mgr).Named("sidecarset").
		For(&v1beta1.SidecarSet{}, builder.WithPredicates(specChanged())).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(namespace, r.namespaceEvents()).
		Owns(&v1beta1.ImagePullJob{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers}).Complete(r)
	if err != nil {
		return fmt.Errorf("set up SidecarSets: %w", err)
	}
	return nil
}

func newReconciler(c client.Client, cfg Config) *reconciler {
	return &reconciler{sets: map[string]*set{}, api: &api{
		Config: cfg, client: c,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_manager_sidecarset_writes_total",
			Help: "Writes to the API server for the rollout of SidecarSets, by resource: pods, sidecarsets, controllerrevisions, imagepulljobs.",
		}, []string{"resource"}),
		pods: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "refit_manager_sidecarset_pods",
			Help: "Pods of a SidecarSet, by state: matched, updated, ready, updated_ready, in_flight, failed, not_upgradable, not_injected.",
		}, []string{"sidecarset", "state"}),
	}}
}

// specChanged drops the updates that are our own writes of the status, and those of annotations and labels but for the one
// that names a version.
func specChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// find returns what is kept of a SidecarSet; nil before it is reconciled for the first time.
func (r *reconciler) find(name string) *set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sets[name]
}

func (r *reconciler) all() []*set {
	r.mu.Lock()
	defer r.mu.Unlock()
	sets := make([]*set, 0, len(r.sets))
	for _, s := range r.sets {
		sets = append(sets, s)
	}
	return sets
}

// keep replaces what is kept of a SidecarSet; nil forgets it.
func (r *reconciler) keep(name string, s *set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s == nil {
		delete(r.sets, name)
		r.pods.DeletePartialMatch(prometheus.Labels{"sidecarset": name})
		return
	}
	r.sets[name] = s
}

// written counts a write, and adds to its error what was being done.
func (a *api) written(resource, doing string, err error) error {
	a.writes.WithLabelValues(resource).Inc()
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// namespaceLabels are empty for a namespace that does not exist.
func (a *api) namespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := a.client.Get(ctx, client.ObjectKey{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return namespace.Labels, nil
}
