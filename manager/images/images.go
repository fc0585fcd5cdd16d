// Package images reconciles ImagePullJobs, ImageListPullJobs and NodeImages: which node pulls what, what has become of it,
// and what no job wants any more. It keeps copies of pull secrets in the namespace from which daemons read. What to write
// is decided in package image.
package images

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/manager/cache"
)

// conflictDelay lets the cache catch up with the write that came before ours.
const conflictDelay = 500 * time.Millisecond

// Config is what the package needs from the manager.
type Config struct {
	Workers int // objects of each kind reconciled at a time
	Nodes   cache.Nodes
	Live    client.Reader // the API server, past the cache: Secrets are never cached
	// SecretNamespace is where copies of pull secrets are kept.
	SecretNamespace string
	Clock           func() time.Time // the API server's time
	Recorder        events.EventRecorder
	Logger          *slog.Logger
}

// api is the access to the API server that the controllers share.
type api struct {
	Config
	client client.Client // reads from the cache
	locks  locks         // of NodeImages, by name
	// copies of pull secrets: one unit is held to make what a job needs, all to remove what no job needs.
	copies *semaphore.Weighted
}

func newAPI(cfg Config, c client.Client) *api {
	return &api{Config: cfg, client: c, copies: semaphore.NewWeighted(allCopies)}
}

// allCopies are all units of api.copies.
const allCopies = math.MaxInt64

// Add adds the controllers to a manager that has not been started.
func Add(mgr ctrl.Manager, cfg Config) error {
	a := newAPI(cfg, mgr.GetClient())
	options := controller.Options{MaxConcurrentReconciles: cfg.Workers}
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	err := ctrl.NewControllerManagedBy(mgr).Named("nodeimage").For(&v1beta1.NodeImage{}).
		Watches(node, &handler.EnqueueRequestForObject{}).
		Watches(&v1beta1.ImagePullJob{}, handler.EnqueueRequestsFromMapFunc(a.nodesOfJob)).
		WithOptions(options).Complete(&nodeImages{a})
	if err != nil {
		return fmt.Errorf("set up NodeImages: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("imagepulljob").For(&v1beta1.ImagePullJob{}).
		Watches(&v1beta1.NodeImage{}, handler.EnqueueRequestsFromMapFunc(a.activeJobs)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(a.jobsOfPod)).
		WithOptions(options).Complete(&jobs{a})
	if err != nil {
		return fmt.Errorf("set up ImagePullJobs: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("imagelistpulljob").For(&v1beta1.ImageListPullJob{}).
		Owns(&v1beta1.ImagePullJob{}).WithOptions(options).Complete(&lists{a})
	if err != nil {
		return fmt.Errorf("set up ImageListPullJobs: %w", err)
	}
	return nil
}

// later is the result for a decision that names a time.
func (a *api) later(at time.Time) ctrl.Result {
	if at.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(at.Sub(a.Clock()), time.Second)}
}

// done turns a conflict into another look.
func done(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (a *api) jobs(ctx context.Context, options ...client.ListOption) ([]v1beta1.ImagePullJob, error) {
	var list v1beta1.ImagePullJobList
	if err := a.client.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list ImagePullJobs: %w", err)
	}
	return list.Items, nil
}

// activeJobs are those that have not ended.
func (a *api) activeJobs(ctx context.Context, _ client.Object) []ctrl.Request {
	list, err := a.jobs(ctx)
	if err != nil {
		a.Logger.Error("ImagePullJobs of a NodeImage not listed", "err", err)
	}
	var requests []ctrl.Request
	for i := range list {
		if list[i].Status.CompletionTime == nil {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list[i])})
		}
	}
	return requests
}

// jobsOfPod are those that select nodes by pods like this one.
func (a *api) jobsOfPod(ctx context.Context, pod client.Object) []ctrl.Request {
	list, err := a.jobs(ctx, client.InNamespace(pod.GetNamespace()))
	if err != nil {
		a.Logger.Error("ImagePullJobs of a pod not listed", "err", err)
	}
	var requests []ctrl.Request
	for i := range list {
		if list[i].Status.CompletionTime == nil && list[i].Spec.PodSelector != nil {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list[i])})
		}
	}
	return requests
}

// nodesOfJob are the NodeImages that name a job which has ended or is gone.
func (a *api) nodesOfJob(ctx context.Context, object client.Object) []ctrl.Request {
	job, ok := object.(*v1beta1.ImagePullJob)
	if !ok || (job.Status.CompletionTime == nil && job.DeletionTimestamp == nil) {
		// A deleted job is passed as it last was, without a deletion timestamp: look whether it is still there.
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(object), &v1beta1.ImagePullJob{}); !apierrors.IsNotFound(err) {
			return nil
		}
	}
	var list v1beta1.NodeImageList
	if err := a.client.List(ctx, &list); err != nil {
		a.Logger.Error("NodeImages of an ImagePullJob not listed", "err", err)
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if names(&list.Items[i], object) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
