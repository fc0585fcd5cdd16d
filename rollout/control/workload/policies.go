// Package workload carries out InPlaceUpdatePolicies: it reads the workload, its revisions and pods, writes the steps of
// in-place updates to pods, the ReplicaSets and the release of the workload, and the status. Package rollout/workload
// decides what to write.
package workload

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/disruptions"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/internal/stale"
	"github.com/refit-project/refit/rollout/control/deleted"
	"github.com/refit-project/refit/rollout/workload"
)

const (
	// gather is the longest time in which several events cause one reconciliation, and soon is how long to wait after an event in any
	// case. A policy is reconciled for at most one part in share of the time: with few pods, updates need not wait.
	gather = 300 * time.Millisecond
	soon   = 20 * time.Millisecond
	share  = 4
	// takesPerPass is how many pods are taken out of service until others are handled and the status is written, and nextPass
	// when the rest follows.
	takesPerPass = 50
	nextPass     = time.Millisecond
	// heldLook is when to look again at a policy that a PodDisruptionBudget holds: an operation on a pod of others may end without
	// an event of the budget.
	heldLook = time.Minute
)

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
	for _, metric := range r.metrics.all() {
		if err := cfg.Metrics.Register(metric); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	made := ctrl.NewControllerManagedBy(mgr).Named("inplaceupdatepolicy").
		For(&v1alpha1.InPlaceUpdatePolicy{}, builder.WithPredicates(policyChanged())).
		Watches(&v1alpha1.InPlaceUpdatePolicy{}, r.policyEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(&v1beta1.ContainerRecreateRequest{}, deleted.Events{EventHandler: on(r.onRequest), Requests: &r.deleted, Clock: cfg.Clock}).
		Watches(&policyv1.PodDisruptionBudget{}, on(r.onDisruption)).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers, NewQueue: faircontrol.Limited(faircontrol.Share(cfg.Workers))})
	if cfg.PrePull {
		made = made.Owns(&v1beta1.ImagePullJob{})
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(appsKind(kind))
		made = made.WatchesMetadata(object, r.onWorkload(kind))
	}
	if err := mgr.Add(ctrlmanager.RunnableFunc(r.unlabelOrphans)); err != nil {
		return fmt.Errorf("set up the labels of workloads: %w", err)
	}
	err := made.Complete(guardcontrol.Reconciler(cfg.Guard, mgr.GetClient(), &v1alpha1.InPlaceUpdatePolicy{}, conflict.Reconciler(r)))
	if err != nil {
		return fmt.Errorf("set up InPlaceUpdatePolicies: %w", err)
	}
	return nil
}

func newReconciler(c client.Client, cfg Config) *reconciler {
	return &reconciler{Config: cfg, client: c, metrics: newMetrics(), interest: newInterest(), states: map[types.NamespacedName]*state{}}
}

// reconciler applies the decisions of workload.Next.
type reconciler struct {
	Config
	client   client.Client // reads from the cache
	metrics  *metrics
	interest *interest
	written  written
	holding  holding
	deleted  deleted.Requests // while their containers may still have been stopping

	lastPodEvent atomic.Int64 // time of the last update event of any pod, in nanoseconds since 1970

	mu     sync.Mutex
	states map[types.NamespacedName]*state
}

// state is what is kept about a policy between reconciliations. It is used by one reconciliation at a time.
type state struct {
	memory workload.Memory
	quiet  quiet
	label  labelPace
	since  time.Time                     // when it was made
	policy *v1alpha1.InPlaceUpdatePolicy // after the last write, which the cache may not show yet
	// refusedPods are the pods whose update the API server has refused to begin.
	refusedPods map[types.UID]workload.RefusedWrite

	// Guarded by reconciler.mu: when the last reconciliation began, how long the last one that has ended took, and why nothing can
	// be pulled for later pods.
	began   time.Time
	took    time.Duration
	refused refusal
}

// state returns the state of a policy whose reconciliation begins; it is made if there is none.
func (r *reconciler) state(key types.NamespacedName) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.states[key] == nil {
		r.states[key] = &state{since: r.Clock()}
	}
	r.states[key].began = r.Clock()
	return r.states[key]
}

// ended notes how long a reconciliation took.
func (r *reconciler) ended(s *state) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.took = r.Clock().Sub(s.began)
}

// forget removes what is kept about a policy.
func (r *reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, key)
	r.interest.own(key, nil)
	r.interest.hold(key, false)
	r.metrics.forget(key)
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	policy := &v1alpha1.InPlaceUpdatePolicy{}
	if err := r.client.Get(ctx, request.NamespacedName, policy); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := r.state(request.NamespacedName)
	defer r.ended(s)
	if last := s.policy; last != nil && last.UID == policy.UID && stale.Older(policy.ResourceVersion, last.ResourceVersion) {
		policy = last.DeepCopy()
	}
	target, decision, more, err := r.decide(ctx, policy, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.setFinalizer(ctx, policy, decision.Finalizer); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if policy.DeletionTimestamp != nil && !decision.Finalizer {
		return ctrl.Result{}, nil
	}
	if err := r.writeStatus(ctx, policy, &decision); err != nil {
		return ctrl.Result{}, err
	}
	s.policy = policy
	s.label.limit(&decision, target, r.Clock())
	acted, err := r.actAll(ctx, policy, target, &decision)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case more:
		return ctrl.Result{RequeueAfter: nextPass}, nil
	case acted:
		decision.Again = decision.Again.Or(r.Clock().Add(gather))
		s.quiet.acted(r.Clock())
	}
	return ctrl.Result{RequeueAfter: decision.Again.Or(s.quiet.next.Time).In(r.Clock(), gather)}, nil
}

// decide decides by the cache. A decision on which budgets depend is made again with what must not be outdated, and limited; more
// says that the rest follows.
func (r *reconciler) decide(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, s *state) (w *workload.Workload, decision workload.Decision, more bool, err error) {
	observed, of, err := r.observe(ctx, policy, s)
	if err != nil {
		return nil, decision, false, err
	}
	key := client.ObjectKeyFromObject(policy)
	decision = workload.Next(policy, observed, r.Clock())
	look := s.quiet.due(decision.Status.Update != nil && of.workload != nil && observed.Unreadable == "", r.Clock())
	if !look && !decision.Takes() && !decision.Concludes(&policy.Status) {
		r.interest.hold(key, false)
		return observed.Workload, decision, false, nil
	}
	r.interest.hold(key, true) // before budgets are read, so that no later change of them is missed
	if err := r.confirm(ctx, policy, of, s, &decision, &observed, look); err != nil {
		return nil, decision, false, err
	}
	decision, more = r.decideBeside(policy, observed)
	held := heldByDisruption(&decision.Status)
	r.interest.hold(key, held)
	if held {
		decision.Again = decision.Again.Or(r.Clock().Add(heldLook))
	}
	return observed.Workload, decision, more, nil
}

func heldByDisruption(status *v1alpha1.InPlaceUpdatePolicyStatus) bool {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
	return c != nil && c.Reason == v1alpha1.ReasonDisruptionBudget
}

// decideBeside decides while no other controller of this process decides, and counts operations that they have begun.
func (r *reconciler) decideBeside(policy *v1alpha1.InPlaceUpdatePolicy, observed workload.Observation) (decision workload.Decision, more bool) {
	by := fmt.Sprintf("InPlaceUpdatePolicy %s/%s %s", policy.Namespace, policy.Name, policy.UID)
	r.Disruptions.DecideBeside(by, func(others map[types.UID]time.Time) (begun []types.UID) {
		observed.Begun = func(uid types.UID) bool { return !others[uid].IsZero() }
		decision = workload.Next(policy, observed, r.Clock())
		more = decision.Limit(takesPerPass)
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
	return decision, more
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
	return r.wrote("inplaceupdatepolicies", "write finalizers of InPlaceUpdatePolicy", err)
}
