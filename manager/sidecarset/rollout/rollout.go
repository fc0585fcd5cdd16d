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
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/manager/disruptions"
	"github.com/refit-project/refit/manager/sidecarset/beside"
	"github.com/refit-project/refit/manager/sidecarset/podapi"
	"github.com/refit-project/refit/manager/sidecarset/report"
)

// Config is what the package needs from the manager.
type Config struct {
	// Namespace is the manager's own, where ControllerRevisions and ImagePullJobs are kept.
	Namespace string
	Workers   int           // SidecarSets reconciled at a time
	Live      client.Reader // the API server, past the cache: pods are updated from what they are now
	// PrePull says that ImagePullJobs are reconciled.
	PrePull bool
	// Disruptions is shared by all that take pods out of service.
	Disruptions *disruptions.Ledger
	Clock       func() time.Time // the API server's time
	Recorder    events.EventRecorder
	Metrics     prometheus.Registerer
	Logger      *slog.Logger
}

// api is what the parts of the controller share.
type api struct {
	Config
	client   client.Client // reads from the cache
	live     *podapi.Pods
	reporter *report.Writer
	writes   *prometheus.CounterVec
}

// reconciler reconciles SidecarSets.
type reconciler struct {
	*api

	heard atomic.Int64 // when the last event of a pod has come, in nanoseconds since 1970

	mu   sync.Mutex
	sets map[string]*set
}

// Index makes the index of the cache that the controller reads by. It is called once, before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error { return beside.Index(ctx, indexer) }

// Add adds the controller to a manager that has not been started.
func Add(mgr ctrl.Manager, cfg Config) error {
	r := newReconciler(mgr.GetClient(), cfg)
	for _, metric := range []prometheus.Collector{r.writes, r.reporter.Pods} {
		if err := cfg.Metrics.Register(metric); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := ctrl.NewControllerManagedBy(mgr).Named("sidecarset").
		For(&v1beta1.SidecarSet{}, builder.WithPredicates(specChanged())).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(&v1beta1.ContainerRecreateRequest{}, r.requestEvents()).
		Watches(&policyv1.PodDisruptionBudget{}, r.disruptionEvents()).
		Watches(namespace, r.namespaceEvents()).
		Owns(&v1beta1.ImagePullJob{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers}).Complete(r)
	if err != nil {
		return fmt.Errorf("set up SidecarSets: %w", err)
	}
	return nil
}

func newReconciler(c client.Client, cfg Config) *reconciler {
	r := &reconciler{sets: map[string]*set{}, api: &api{
		Config: cfg, client: c,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_manager_sidecarset_writes_total",
			Help: "Writes to the API server for the rollout of SidecarSets, by resource: pods, sidecarsets, controllerrevisions, imagepulljobs.",
		}, []string{"resource"}),
	}}
	r.reporter = &report.Writer{Client: c, Recorder: cfg.Recorder, Clock: cfg.Clock, Written: r.written, Pods: report.NewPods()}
	r.live = &podapi.Pods{Client: c, Live: cfg.Live, Written: r.written}
	return r
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
		r.reporter.Forget(name)
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
