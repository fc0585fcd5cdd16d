// Package configchange creates RestartRollouts when ConfigMaps or Secrets used by containers of a workload have
// changed, if an annotation of the workload requests it. It watches metadata of workloads, ConfigMaps and Secrets,
// reads the contents of those in use, and keeps a RestartTrigger for each workload. Package rollout/configchange
// decides what to do.
package configchange

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/rollout/configchange"
)

// Config holds what the package needs from the manager.
type Config struct {
	Workers  int              // number of workloads reconciled concurrently
	Secrets  bool             // watch Secrets too
	Clock    func() time.Time // the API server's time; the times in triggers are written in it
	Recorder events.EventRecorder
	Guard    *guard.Guard // catches panics while one workload is handled
	Logger   *slog.Logger
}

// Add adds the controller to a manager that has not been started yet.
func Add(mgr ctrl.Manager, cfg Config) error {
	r := &reconciler{Config: cfg, client: mgr.GetClient(), live: mgr.GetAPIReader(), paces: newPaces(cfg.Workers)}
	c, err := controller.NewTyped("restarttrigger", mgr, controller.TypedOptions[workload]{Reconciler: guardcontrol.Typed(cfg.Guard, conflict.Reconciler(r), named), MaxConcurrentReconciles: cfg.Workers})
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	return watch(mgr, c, r)
}

// reconciler applies the decisions of configchange.Next.
type reconciler struct {
	Config
	client client.Client // reads from the cache
	live   client.Reader // reads from the API server
	paces  *paces
}

// Reconcile implements reconcile.TypedReconciler.
func (r *reconciler) Reconcile(ctx context.Context, key workload) (ctrl.Result, error) {
	done, later := r.paces.begin(key.Namespace, time.Now())
	if later > 0 {
		return ctrl.Result{RequeueAfter: later}, nil
	}
	defer done()
	target, err := r.target(ctx, key)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // the garbage collector deletes the trigger of a deleted workload
	}
	if target.object.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	if _, wanted := target.object.GetAnnotations()[v1alpha1.AnnotationRestartOnConfigChange]; !wanted {
		return ctrl.Result{}, r.forget(ctx, key)
	}
	trigger, err := r.trigger(ctx, key, target.object)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ctrl.Result{}, nil // the trigger has been deleted with the namespace, and the workload will be
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	decision, err := r.decide(ctx, trigger, target)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.carryOut(ctx, trigger, target, decision); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: decision.Again.In(r.Clock(), time.Millisecond)}, nil
}

func (r *reconciler) decide(ctx context.Context, trigger *v1alpha1.RestartTrigger, target *target) (configchange.Decision, error) {
	settings, err := configchange.Read(target.object.GetAnnotations(), &target.template.Spec)
	if err != nil {
		r.Recorder.Eventf(target.object, nil, corev1.EventTypeWarning, v1alpha1.ReasonInvalidAnnotation, "Watch", "%v", err)
		return configchange.Invalid(trigger, err, r.Clock()), nil
	}
	observed := configchange.Observation{Settings: settings, References: configchange.References(&target.template.Spec, settings.Containers)}
	if observed.Objects, err = r.objects(ctx, trigger, observed.References); err != nil {
		return configchange.Decision{}, err
	}
	if observed.Busy, err = r.busy(ctx, trigger); err != nil {
		return configchange.Decision{}, err
	}
	return configchange.Next(trigger, observed, r.Clock()), nil
}

// paused says how a rollout that waits for a user begins.
func paused(created *v1alpha1.RestartRollout) string {
	if !created.Spec.Paused {
		return ""
	}
	return "; it waits for kubectl refit rollout resume restartrollout/" + created.Name + " --namespace=" + created.Namespace
}

func (r *reconciler) carryOut(ctx context.Context, trigger *v1alpha1.RestartTrigger, target *target, decision configchange.Decision) error {
	if decision.Refresh != "" {
		if err := r.refresh(ctx, trigger, target, decision.Refresh); err != nil {
			return err
		}
	}
	if created := decision.Create; created != nil {
		reason := created.Annotations[v1beta1.AnnotationReason]
		switch err := r.client.Create(ctx, created); {
		case err == nil:
			r.Logger.Info("configuration changed", "workload", trigger.Namespace+"/"+trigger.Name, "reason", reason, "rollout", created.Name)
			r.Recorder.Eventf(target.object, created, corev1.EventTypeNormal, "ConfigChanged", "Restart", "%s: RestartRollout %s has been created%s", reason, created.Name, paused(created))
		case !apierrors.IsAlreadyExists(err):
			if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
				r.Recorder.Eventf(target.object, nil, corev1.EventTypeWarning, "RolloutRefused", "Restart", "RestartRollout %s was refused: %v", created.Name, err)
			}
			return fmt.Errorf("create RestartRollout %s: %w", created.Name, err) // the change stays pending
		}
	}
	if equality.Semantic.DeepEqual(trigger.Status, decision.Status) {
		return nil
	}
	changed := trigger.DeepCopy()
	changed.Status = decision.Status
	if err := r.client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("write status of RestartTrigger: %w", err)
	}
	if decision.Kept != "" {
		r.Recorder.Eventf(target.object, nil, corev1.EventTypeWarning, v1alpha1.ReasonImmutableReplaced, "Watch", "%s", decision.Kept)
	}
	return nil
}
