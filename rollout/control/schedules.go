package control

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/conflict"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/rollout/schedule"
)

// A rollout that the API server has refused is tried again after refusedDelay, which doubles each time up to
// maxRefusedDelay. That is the maximum delay of the rollout at the next scheduled time.
const (
	refusedDelay    = time.Second
	maxRefusedDelay = time.Minute
)

// addSchedules adds the controller of RestartSchedules.
func addSchedules(mgr ctrl.Manager, cfg Config) error {
	return ctrl.NewControllerManagedBy(mgr).Named("restartschedule").
		For(&v1alpha1.RestartSchedule{}).
		Owns(&v1alpha1.RestartRollout{}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: cfg.Workers, NewQueue: faircontrol.Limited(faircontrol.Share(cfg.Workers)),
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](refusedDelay, maxRefusedDelay),
		}).
		Complete(guardcontrol.Reconciler(cfg.Guard, mgr.GetClient(), &v1alpha1.RestartSchedule{}, conflict.Reconciler(&scheduler{Config: cfg, client: mgr.GetClient()})))
}

// scheduler applies the decisions of schedule.Next.
type scheduler struct {
	Config
	client client.Client // reads from the cache
}

// Reconcile implements reconcile.Reconciler.
func (s *scheduler) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	var object v1alpha1.RestartSchedule
	if err := s.client.Get(ctx, key.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	times, err := schedule.Read(&object.Spec)
	if err != nil { // admission refuses this; another version of refit-manager may have admitted it
		s.Recorder.Eventf(&object, nil, corev1.EventTypeWarning, v1alpha1.ReasonInvalidSchedule, "Schedule", "%v", err)
		return ctrl.Result{}, client.IgnoreNotFound(s.write(ctx, &object, schedule.Invalid(&object, err, s.Clock())))
	}
	own, err := s.rollouts(ctx, &object)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := s.Clock()
	decision := schedule.Next(&object, times, own, now)
	refused, err := s.carryOut(ctx, &object, decision)
	switch {
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case refused != nil: // like CronJob: until startingDeadlineSeconds have passed, or the next scheduled time
		return ctrl.Result{}, refused
	}
	return ctrl.Result{RequeueAfter: decision.Again.In(now, time.Millisecond)}, nil
}

// rollouts returns the rollouts that the schedule has created.
func (s *scheduler) rollouts(ctx context.Context, object *v1alpha1.RestartSchedule) ([]*v1alpha1.RestartRollout, error) {
	var list v1alpha1.RestartRolloutList
	if err := s.client.List(ctx, &list, client.InNamespace(object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list RestartRollouts: %w", err)
	}
	var own []*v1alpha1.RestartRollout
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], object) {
			own = append(own, &list.Items[i])
		}
	}
	return own, nil
}

// carryOut applies a decision. refused is why the API server has refused the rollout, or nil.
func (s *scheduler) carryOut(ctx context.Context, object *v1alpha1.RestartSchedule, decision schedule.Decision) (refused, err error) {
	for _, old := range decision.Delete {
		err := s.client.Delete(ctx, old.DeepCopy(), client.Preconditions{UID: &old.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete RestartRollout %s: %w", old.Name, err)
		}
	}
	if created := decision.Create; created != nil {
		switch err := s.client.Create(ctx, created); {
		case err == nil:
			s.Recorder.Eventf(object, created, corev1.EventTypeNormal, "RolloutCreated", "Schedule", "RestartRollout %s has been created", created.Name)
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil, nil // the schedule is being deleted
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
			s.Recorder.Eventf(object, nil, corev1.EventTypeWarning, v1alpha1.ReasonRolloutRefused, "Schedule", "RestartRollout %s was refused: %v", created.Name, err)
			refused = fmt.Errorf("create RestartRollout %s: %w", created.Name, err)
			decision.Refuse(object, err, s.Clock())
		case !apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("create RestartRollout %s: %w", created.Name, err)
		}
	}
	if refused == nil { // otherwise no rollout would restart the pods
		if err := s.replace(ctx, decision); err != nil {
			return nil, err
		}
	}
	if decision.Waiting != "" {
		s.Recorder.Eventf(object, nil, corev1.EventTypeWarning, "RolloutDelayed", "Schedule", "RestartRollout %s has not ended; the next one waits for it", decision.Waiting)
	}
	if err := s.write(ctx, object, decision); err != nil {
		return nil, err
	}
	return refused, nil
}

// replace makes rollouts end that the new one replaces.
func (s *scheduler) replace(ctx context.Context, decision schedule.Decision) error {
	for _, old := range decision.Replace {
		changed := old.DeepCopy()
		meta.SetStatusCondition(&changed.Status.Conditions, decision.Replaced)
		if err := s.client.Status().Update(ctx, changed); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("write condition of RestartRollout %s: %w", old.Name, err)
		}
	}
	return nil
}

// write writes a changed status.
func (s *scheduler) write(ctx context.Context, object *v1alpha1.RestartSchedule, decision schedule.Decision) error {
	if equality.Semantic.DeepEqual(object.Status, decision.Status) {
		return nil
	}
	changed := object.DeepCopy()
	changed.Status = decision.Status
	if err := s.client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("write status of RestartSchedule: %w", err)
	}
	return nil
}
