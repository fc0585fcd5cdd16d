package control

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/jobend"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/conflict"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

// jobEndAgain is the delay before a pod is checked again if its sidecars have not ended. By then an unsuccessful
// request has been deleted.
const jobEndAgain = 2 * time.Minute

// addJobEnds adds the controller that stops the sidecars of pods whose main containers have ended.
func addJobEnds(mgr ctrl.Manager, cfg Config) error {
	due := predicate.NewPredicateFuncs(func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		return ok && jobend.Due(pod)
	})
	r := jobEndReconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), nodes: cfg.Nodes, now: cfg.Clock, log: cfg.Logger}
	return ctrl.NewControllerManagedBy(mgr).
		Named("jobend").
		For(&corev1.Pod{}, builder.WithPredicates(due)).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers, NewQueue: faircontrol.Queue}).
		Complete(guardcontrol.Reconciler(cfg.Guard, mgr.GetClient(), &corev1.Pod{}, conflict.Reconciler(r)))
}

// jobEndReconciler applies the decisions of jobend.Next about one pod, which it reads from the API server.
type jobEndReconciler struct {
	client client.Client
	live   client.Reader
	nodes  cache.Nodes
	now    func() time.Time
	log    *slog.Logger
}

// Reconcile implements reconcile.Reconciler.
func (r jobEndReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.live.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !jobend.Due(&pod) {
		return ctrl.Result{}, nil
	}
	node, err := r.nodes.Find(ctx, pod.Spec.NodeName)
	if err != nil {
		return ctrl.Result{}, err
	}
	virtual := node != nil && node.Labels[v1beta1.LabelType] == v1beta1.TypeVirtualKubelet
	if err := r.apply(ctx, &pod, jobend.Next(&pod, virtual, r.now())); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: jobEndAgain}, nil
}

// apply marks the pod, and stops its sidecars. The mark changes the pod's resource version, so a watch event follows.
func (r jobEndReconciler) apply(ctx context.Context, pod *corev1.Pod, decision jobend.Decision) error {
	switch {
	case decision.Status != nil:
		return patchPodStatus(ctx, r.client, pod, decision.Status)
	case decision.Images != nil:
		patch := client.StrategicMergeFrom(pod, client.MergeFromWithOptimisticLock{})
		if err := r.client.Patch(ctx, jobend.Replace(pod, decision.Images), patch); err != nil {
			return fmt.Errorf("replace images of sidecars of pod %s: %w", pod.Name, err)
		}
		r.log.Info("images of sidecars replaced, as the main containers have ended", "pod", pod.Namespace+"/"+pod.Name)
	case decision.Request != nil:
		err := r.client.Get(ctx, client.ObjectKeyFromObject(decision.Request), &v1beta1.ContainerRecreateRequest{})
		if apierrors.IsNotFound(err) {
			err = r.client.Create(ctx, decision.Request)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("request the end of sidecars of pod %s: %w", pod.Name, err)
		}
	}
	return nil
}
