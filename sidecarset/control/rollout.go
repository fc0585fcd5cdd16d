// Package control updates the sidecars of running pods. It keeps the ControllerRevisions of each SidecarSet, observes
// its pods one by one, applies the decisions of the packages in sidecarset, and writes the status. Decisions must stay
// out.
package control

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

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/disruptions"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/internal/podapi"
	"github.com/refit-project/refit/sidecarset/control/beside"
	"github.com/refit-project/refit/sidecarset/control/report"
)

// Config holds what the package needs from the manager.
type Config struct {
	// Namespace is the manager's own namespace, which contains ControllerRevisions and ImagePullJobs.
	Namespace string
	// OpenKruise is the namespace with the ControllerRevisions that OpenKruise has written; empty if they are not used.
	OpenKruise string
	// Excluded are the namespaces, beside kube-system and Namespace, in which the webhook is not called for new pods.
	Excluded []string
	Workers  int           // number of SidecarSets reconciled concurrently
	Live     client.Reader // reads from the API server and not from a cache, because updates depend on the present state
	PrePull  bool          // the manager reconciles ImagePullJobs
	// Disruptions is shared by all controllers that make pods unavailable.
	Disruptions *disruptions.Ledger
	Clock       func() time.Time // the API server's time
	Recorder    events.EventRecorder
	Metrics     prometheus.Registerer
	Guard       *guard.Guard // catches panics while one pod is handled
	Logger      *slog.Logger
}

// excluded are the namespaces, beside kube-system, in which the webhook is not called for new pods.
func (c Config) excluded() []string { return append([]string{c.Namespace}, c.Excluded...) }

// api is what the parts of the controller share.
type api struct {
	Config
	client   client.Client // reads from the cache
	live     *podapi.API
	reporter *report.Writer
	writes   *prometheus.CounterVec
}

// reconciler reconciles SidecarSets.
type reconciler struct {
	*api

	lastPodEvent atomic.Int64 // time of the last pod event, in nanoseconds since 1970

	mu   sync.Mutex
	sets map[string]*set
}

// Index adds the cache index that the controller uses. It must be called once, before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error { return beside.Index(ctx, indexer) }

// Add adds the controller to a manager that has not been started yet.
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
		For(&v1beta1.SidecarSet{}, builder.WithPredicates(beside.SpecChanged())).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(&v1beta1.ContainerRecreateRequest{}, r.requestEvents()).
		Watches(&policyv1.PodDisruptionBudget{}, r.disruptionEvents()).
		Watches(namespace, r.namespaceEvents()).
		Owns(&v1beta1.ImagePullJob{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers}).
		Complete(guardcontrol.Reconciler(cfg.Guard, mgr.GetClient(), &v1beta1.SidecarSet{}, conflict.Reconciler(r)))
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
	r.live = &podapi.API{Client: c, Live: cfg.Live, Written: r.written}
	return r
}

// find returns the state of a SidecarSet, or nil before its first reconciliation.
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

// setState replaces the state of a SidecarSet; nil removes it.
func (r *reconciler) setState(name string, s *set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s == nil {
		delete(r.sets, name)
		r.reporter.Forget(name)
		return
	}
	r.sets[name] = s
}

// written counts a write, and wraps its error with what was being done.
func (a *api) written(resource, doing string, err error) error {
	a.writes.WithLabelValues(resource).Inc()
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
