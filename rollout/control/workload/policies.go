// Package workload carries out InPlaceUpdatePolicies: it reads the workload, its revisions and pods, writes the steps of
// in-place updates to pods, the ReplicaSets and the release of the workload, and the status. Package rollout/workload
// decides what to write.
package workload

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/disruptions"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/internal/podapi"
	"github.com/refit-project/refit/rollout/control/deleted"
	"github.com/refit-project/refit/rollout/workload"
)

// gather is how long to wait after an event for further ones: the pods of a workload are read for each reconciliation.
const gather = 300 * time.Millisecond

// Config holds what the package needs from the manager.
type Config struct {
	Workers int           // number of policies reconciled concurrently
	Live    client.Reader // reads from the API server and not from a cache, because updates depend on the present state
	PrePull bool          // ImagePullJobs are reconciled, so that images can be pulled before an update
	// Daemons are the namespaces of the daemons that pull images.
	Daemons cache.Daemons
	User    string           // of the manager: what it writes is not held
	Clock   func() time.Time // the API server's time
	// Disruptions is shared by all controllers that make pods unavailable.
	Disruptions *disruptions.Ledger
	Recorder    events.EventRecorder
	Metrics     prometheus.Registerer
	Guard       *guard.Guard // catches panics while one object is handled
	Logger      *slog.Logger
}

// Add adds the controller to a manager that has not been started yet.
func Add(mgr ctrl.Manager, cfg Config) error {
	addHold(mgr, cfg)
	r := newReconciler(mgr.GetClient(), cfg)
	if err := cfg.Metrics.Register(r.writes); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	made := ctrl.NewControllerManagedBy(mgr).Named("inplaceupdatepolicy").
		For(&v1alpha1.InPlaceUpdatePolicy{}).
		Watches(&corev1.Pod{}, r.inNamespace()).
		Watches(&v1beta1.ContainerRecreateRequest{}, deleted.Events{EventHandler: r.inNamespace(), Requests: &r.deleted, Clock: cfg.Clock}).
		Watches(&policyv1.PodDisruptionBudget{}, r.inNamespace()).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers, NewQueue: faircontrol.Queue})
	if cfg.PrePull {
		made = made.Owns(&v1beta1.ImagePullJob{})
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(appsKind(kind))
		made = made.WatchesMetadata(object, r.inNamespace())
	}
	err := made.Complete(guardcontrol.Reconciler(cfg.Guard, mgr.GetClient(), &v1alpha1.InPlaceUpdatePolicy{}, conflict.Reconciler(r)))
	if err != nil {
		return fmt.Errorf("set up InPlaceUpdatePolicies: %w", err)
	}
	return nil
}

func newReconciler(c client.Client, cfg Config) *reconciler {
	return &reconciler{Config: cfg, client: c, writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_manager_inplaceupdate_writes_total",
		Help: "Writes to the API server for InPlaceUpdatePolicies, by resource: pods, replicasets, workloads, imagepulljobs, containerrecreaterequests, inplaceupdatepolicies.",
	}, []string{"resource"})}
}

// reconciler applies the decisions of workload.Next.
type reconciler struct {
	Config
	client client.Client // reads from the cache
	writes *prometheus.CounterVec
	// deleted holds requests that were deleted while their containers may still have been stopping.
	deleted deleted.Requests
	holding holding
}

// inNamespace returns a handler that enqueues the policies of the namespace of an object, after a delay: several events
// cause one reconciliation.
func (r *reconciler) inNamespace() handler.EventHandler {
	enqueue := func(ctx context.Context, object client.Object, q queue) {
		var list v1alpha1.InPlaceUpdatePolicyList
		if err := r.client.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			r.Logger.Error("list InPlaceUpdatePolicies", "namespace", object.GetNamespace(), "err", err)
			return
		}
		for i := range list.Items {
			q.AddAfter(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}, gather)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	policy := &v1alpha1.InPlaceUpdatePolicy{}
	if err := r.Live.Get(ctx, key.NamespacedName, policy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	observed, err := r.observe(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := r.decide(policy, observed)
	if err := r.setFinalizer(ctx, policy, decision.Finalizer); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if policy.DeletionTimestamp != nil && !decision.Finalizer {
		return ctrl.Result{}, nil
	}
	if err := r.writeStatus(ctx, policy, &decision); err != nil {
		return ctrl.Result{}, err
	}
	err = r.actAll(ctx, policy, observed.Workload, &decision)
	if err != nil {
		return ctrl.Result{}, err
	}
	again := decision.Again
	if len(decision.Actions) > 0 {
		again = again.Or(r.Clock().Add(gather))
	}
	return ctrl.Result{RequeueAfter: again.In(r.Clock(), gather)}, nil
}

// decide decides while no other controller of this process decides, and counts operations that they have begun.
func (r *reconciler) decide(policy *v1alpha1.InPlaceUpdatePolicy, observed workload.Observation) (decision workload.Decision) {
	by := fmt.Sprintf("InPlaceUpdatePolicy %s/%s %s", policy.Namespace, policy.Name, policy.UID)
	r.Disruptions.DecideBeside(by, func(others map[types.UID]time.Time) (begun []types.UID) {
		observed.Begun = func(uid types.UID) bool { return !others[uid].IsZero() }
		decision = workload.Next(policy, observed, r.Clock())
		for i := range decision.Actions {
			if a := &decision.Actions[i]; a.Kind == workload.ActionUpdate || a.Kind == workload.ActionEvict {
				begun = append(begun, a.Pod.UID)
			}
		}
		for _, pod := range observed.Pods {
			decision.Again = decision.Again.Or(others[pod.UID])
		}
		return begun
	})
	return decision
}

// setFinalizer adds or removes the finalizer.
func (r *reconciler) setFinalizer(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, wanted bool) error {
	before := policy.DeepCopy()
	changed := false
	if wanted {
		changed = policy.DeletionTimestamp == nil && controllerutil.AddFinalizer(policy, v1alpha1.FinalizerInPlaceUpdate)
	} else {
		changed = controllerutil.RemoveFinalizer(policy, v1alpha1.FinalizerInPlaceUpdate)
	}
	if !changed {
		return nil
	}
	err := r.client.Patch(ctx, policy, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return r.written("inplaceupdatepolicies", "write finalizers of InPlaceUpdatePolicy", err)
}

// writeStatus writes a changed status, and sends Events about changes of the condition Progressing.
func (r *reconciler) writeStatus(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision) error {
	if equality.Semantic.DeepEqual(policy.Status, decision.Status) {
		return nil
	}
	before := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProgressing)
	policy.Status = *decision.Status.DeepCopy()
	if err := r.client.Status().Update(ctx, policy); err != nil {
		return r.written("inplaceupdatepolicies", "write status of InPlaceUpdatePolicy", err)
	}
	r.writes.WithLabelValues("inplaceupdatepolicies").Inc()
	if decision.NotPulled != "" {
		r.Recorder.Eventf(policy, nil, corev1.EventTypeWarning, "PrePullSkipped", "PrePull", "pods are updated although images were not pulled on all nodes before: %s", foreign.Shorten(decision.NotPulled, maxEvent))
	}
	after := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProgressing)
	if after == nil || before != nil && before.Reason == after.Reason && before.Status == after.Status {
		return nil
	}
	kind := corev1.EventTypeNormal
	if after.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(policy, nil, kind, after.Reason, "Update", "%s", after.Message)
	r.Logger.Info("InPlaceUpdatePolicy", "policy", policy.Namespace+"/"+policy.Name, "reason", after.Reason, "message", after.Message)
	return nil
}

func (r *reconciler) podAPI() *podapi.API {
	return &podapi.API{Client: r.client, Live: r.Live, Written: r.written}
}

// written counts a write, and wraps its error with what was being done.
func (r *reconciler) written(resource, doing string, err error) error {
	r.writes.WithLabelValues(resource).Inc()
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
