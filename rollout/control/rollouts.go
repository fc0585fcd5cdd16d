// Package control admits RestartRollouts and carries them out: it reads the workload, its pods, the requests and the
// PodDisruptionBudgets, creates ContainerRecreateRequests and writes the status. It creates the RestartRollouts of
// RestartSchedules. Package rollout decides what to create and to write.
package control

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/disruptions"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/internal/wording"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/control/deleted"
)

// A rollout that restarts thousands of pods at once creates this many requests, each of which the webhook reviews, and
// then lets its worker handle other rollouts.
const (
	startsPerPass = 50
	nextPass      = time.Millisecond
)

// Config holds what the package needs from the manager.
type Config struct {
	Workers int              // number of rollouts reconciled concurrently
	User    string           // the manager's own user name, which creates rollouts on behalf of others
	Clock   func() time.Time // the API server's time; the times in rollouts are written in it
	// Disruptions is shared by all controllers that make pods unavailable.
	Disruptions *disruptions.Ledger
	Recorder    events.EventRecorder
	Metrics     prometheus.Registerer
	Guard       *guard.Guard // catches panics while one object is handled
	Logger      *slog.Logger
}

// Add adds the webhook and the controllers to a manager that has not been started yet.
func Add(mgr ctrl.Manager, cfg Config) error {
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_manager_restart_rollouts_total",
		Help: "RestartRollouts that have ended, by outcome (succeeded, failed), reason, and the kind of what triggered them (RestartSchedule, ConfigMap, Secret, or User).",
	}, []string{"outcome", "reason", "trigger"})
	if err := cfg.Metrics.Register(ended); err != nil {
		return err
	}
	addAdmission(mgr, cfg)
	if err := addSchedules(mgr, cfg); err != nil {
		return fmt.Errorf("set up RestartSchedules: %w", err)
	}
	r := &reconciler{Config: cfg, client: mgr.GetClient(), live: mgr.GetAPIReader(), ended: ended}
	return ctrl.NewControllerManagedBy(mgr).Named("restartrollout").
		For(&v1alpha1.RestartRollout{}).
		Watches(&v1beta1.ContainerRecreateRequest{}, deleted.Events{EventHandler: handler.EnqueueRequestsFromMapFunc(r.active), Requests: &r.deleted, Clock: cfg.Clock}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.active), builder.WithPredicates(podChanged())).
		Watches(&policyv1.PodDisruptionBudget{}, handler.EnqueueRequestsFromMapFunc(r.active)).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers, NewQueue: faircontrol.Limited(faircontrol.Share(cfg.Workers))}).
		Complete(guardcontrol.Reconciler(cfg.Guard, mgr.GetClient(), &v1alpha1.RestartRollout{}, conflict.Reconciler(r)))
}

// reconciler applies the decisions of rollout.Next.
type reconciler struct {
	Config
	client client.Client // reads from the cache
	live   client.Reader // reads from the API server
	ended  *prometheus.CounterVec
	// deleted holds requests that were deleted while their containers may still have been stopping.
	deleted deleted.Requests
	reads   readPace
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	if delay := r.reads.delay(key.Namespace, r.Clock()); delay > 0 {
		return ctrl.Result{RequeueAfter: delay}, nil
	}
	var object v1alpha1.RestartRollout
	if err := r.client.Get(ctx, key.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	decision, err := r.decide(ctx, &object)
	if err != nil {
		return ctrl.Result{}, err
	}
	if decision.Delete {
		err := r.client.Delete(ctx, &object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if len(decision.Start) > startsPerPass {
		decision.Start, decision.Again = decision.Start[:startsPerPass], decision.Again.Or(r.Clock().Add(nextPass))
	}
	started := len(decision.Start)
	failures, err := r.start(ctx, &object, decision.Start)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision.Refuse(failures)
	if err := r.write(ctx, &object, decision.Status, started-len(failures)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: decision.Again.In(r.Clock(), time.Millisecond)}, nil
}

// decide decides from the cache. Before it starts anything, it decides again from the API server. After an outage, or
// when another replica was the leader, the cache may be seconds behind: a pod that it shows as ready may be
// unavailable, and a request of the other replica may be missing. This costs one list of pods and one of requests for
// each batch, not for each event.
func (r *reconciler) decide(ctx context.Context, object *v1alpha1.RestartRollout) (rollout.Decision, error) {
	observed, of, err := r.observe(ctx, object)
	if err != nil {
		return rollout.Decision{}, err
	}
	decision := rollout.Next(object, observed, r.Clock())
	if len(decision.Start) > 0 {
		if err := r.refresh(ctx, object, of, &observed); err != nil {
			return decision, err
		}
		decision = r.decideAlone(object, observed)
	}
	if object.Status.CompletionTime != nil || !meta.IsStatusConditionTrue(decision.Status.Conditions, v1alpha1.ConditionSucceeded) {
		return decision, nil
	}
	if observed.Terminating, err = r.terminating(ctx, object.Namespace); err != nil || !observed.Terminating {
		return decision, err
	}
	return rollout.Next(object, observed, r.Clock()), nil
}

// decideAlone decides while no other controller of this process decides, and counts operations that they have begun.
func (r *reconciler) decideAlone(object *v1alpha1.RestartRollout, observed rollout.Observation) (decision rollout.Decision) {
	by := fmt.Sprintf("RestartRollout %s/%s %s", object.Namespace, object.Name, object.UID)
	r.Disruptions.DecideBeside(by, func(others map[types.UID]time.Time) []types.UID {
		observed.Begun = func(uid types.UID) bool { return !others[uid].IsZero() }
		decision = rollout.Next(object, observed, r.Clock())
		starts := make(map[string]bool, len(decision.Start))
		for _, request := range decision.Start {
			starts[request.Spec.PodName] = true
		}
		var begun []types.UID
		for _, pod := range observed.Pods {
			if starts[pod.Name] {
				begun = append(begun, pod.UID)
			}
			decision.Again = decision.Again.Or(others[pod.UID])
		}
		return begun
	})
	return decision
}

// start creates requests, and returns refused ones. After rollout.MaxFailures refusals it stops.
func (r *reconciler) start(ctx context.Context, object *v1alpha1.RestartRollout, requests []*v1beta1.ContainerRecreateRequest) ([]v1alpha1.PodFailure, error) {
	var refused []v1alpha1.PodFailure
	for _, request := range requests {
		if len(refused) == rollout.MaxFailures {
			break
		}
		err := r.client.Create(ctx, request)
		switch {
		case err == nil:
			r.reportNotDrained(ctx, object, request)
		case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		case apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			refused = append(refused, v1alpha1.PodFailure{Pod: request.Spec.PodName, Reason: rollout.ReasonRefused, Message: err.Error()})
		default:
			return refused, fmt.Errorf("create ContainerRecreateRequest for pod %s: %w", request.Spec.PodName, err)
		}
	}
	return refused, nil
}

// reportNotDrained sends an Event about a pod that stays ready although the rollout requests a drain, once for each request.
func (r *reconciler) reportNotDrained(ctx context.Context, object *v1alpha1.RestartRollout, request *v1beta1.ContainerRecreateRequest) {
	var pod corev1.Pod
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}, &pod); err != nil {
		return // without the Event: the restart has already begun
	}
	if message := podrules.NotDrained(request, &pod); message != "" {
		r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, "NotDrained", "Restart", "%s", message)
	}
}

// write writes a changed status, and sends Events about its start and end.
func (r *reconciler) write(ctx context.Context, object *v1alpha1.RestartRollout, status v1alpha1.RestartRolloutStatus, started int) error {
	if started > 0 {
		r.Recorder.Eventf(object, nil, corev1.EventTypeNormal, "RestartStarted", "Restart", "%s being restarted; %d of %d have been", wording.Count(started, "pod is", "pods are"), status.RestartedPods, status.MatchedPods)
	}
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	changed := object.DeepCopy()
	if status.CompletionTime != nil {
		if err := r.recordEnd(ctx, changed, &status); err != nil {
			return err
		}
	}
	changed.Status = status
	if err := r.client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("write status of RestartRollout: %w", err)
	}
	if object.Status.CompletionTime == nil && status.CompletionTime != nil {
		r.reportEnd(changed)
	}
	return nil
}

// recordEnd writes the annotation that keeps the rollout from starting again if it is restored without its status. It is
// written before the status.
func (r *reconciler) recordEnd(ctx context.Context, object *v1alpha1.RestartRollout, status *v1alpha1.RestartRolloutStatus) error {
	record := rollout.FinishedAnnotation(object.Name, status)
	if object.Annotations[v1alpha1.AnnotationFinished] == record {
		return nil
	}
	before := object.DeepCopy()
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, v1alpha1.AnnotationFinished, record)
	if err := r.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write annotation %s of RestartRollout: %w", v1alpha1.AnnotationFinished, err)
	}
	return nil
}

func (r *reconciler) reportEnd(object *v1alpha1.RestartRollout) {
	kind, outcome := corev1.EventTypeNormal, "succeeded"
	condition := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionSucceeded)
	if condition.Status != metav1.ConditionTrue {
		kind, outcome = corev1.EventTypeWarning, "failed"
	}
	trigger, _, triggered := strings.Cut(object.Annotations[v1alpha1.AnnotationTrigger], "/")
	if !triggered {
		trigger = "User"
	}
	r.ended.WithLabelValues(outcome, condition.Reason, trigger).Inc()
	r.Logger.Info("RestartRollout ended", "rollout", object.Namespace+"/"+object.Name, "outcome", outcome, "reason", condition.Reason)
	r.Recorder.Eventf(object, nil, kind, condition.Reason, "End", "%s", condition.Message)
}
