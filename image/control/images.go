// Package control reconciles ImagePullJobs, ImageListPullJobs and NodeImages: which node pulls which image, how the
// pulls have ended, and which entries no job needs any more. It keeps copies of pull secrets in the namespace from
// which daemons read. Package image and its subpackages decide what to write.
package control

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/control/nodewrite"
	"github.com/refit-project/refit/image/control/secretcopy"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/conflict"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/internal/stale"
)

// First and longest delay before a retry. The delay doubles each time.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Config holds what the package needs from the manager.
type Config struct {
	Workers int // number of objects of each kind reconciled concurrently
	Nodes   cache.Nodes
	Live    client.Reader // reads from the API server and not from a cache; Secrets are never cached
	// SecretNamespace is the namespace of the copies of pull secrets.
	SecretNamespace string
	Clock           func() time.Time // the API server's time
	Recorder        events.EventRecorder
	Guard           *guard.Guard // catches panics while one object is handled
	Logger          *slog.Logger
}

// ByObject returns the cache options of NodeImages, whose annotation with the outcomes of removed entries may be longer than
// the annotations of other objects. Without it jobs would pull their images again.
func ByObject() cache.ByObject {
	trim := func(object any) (any, error) {
		if node, ok := object.(*v1beta1.NodeImage); ok {
			node.ManagedFields = nil
		}
		return object, nil
	}
	return cache.ByObject{&v1beta1.NodeImage{}: ctrlcache.ByObject{Transform: trim}}
}

// api is the access to the API server that the controllers share.
type api struct {
	Config
	client   client.Client // reads from the cache
	writer   nodewrite.Writer
	copies   *secretcopy.Copies
	copied   times                          // when the pull secrets of jobs were last copied
	wrote    stale.Writes[client.ObjectKey] // statuses of jobs
	progress times                          // when the statuses of jobs were last written
	interval time.Duration                  // between writes of the status of a running job
}

func newAPI(cfg Config, c client.Client) *api {
	return &api{Config: cfg, client: c, copies: secretcopy.New(c, cfg.Live, cfg.SecretNamespace), interval: progressInterval}
}

// Add adds the controllers to a manager that has not been started yet.
func Add(mgr ctrl.Manager, cfg Config) error {
	a := newAPI(cfg, mgr.GetClient())
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	err := ctrl.NewControllerManagedBy(mgr).Named("nodeimage").For(&v1beta1.NodeImage{}).
		Watches(node, &handler.EnqueueRequestForObject{}).
		Watches(&v1beta1.ImagePullJob{}, handler.EnqueueRequestsFromMapFunc(a.nodesOfJob)).
		WithOptions(cfg.options()).Complete(guardcontrol.Reconciler(cfg.Guard, a.client, &v1beta1.NodeImage{}, conflict.Reconciler(&nodeImages{a})))
	if err != nil {
		return fmt.Errorf("set up NodeImages: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("imagepulljob").For(&v1beta1.ImagePullJob{}).
		Watches(&v1beta1.NodeImage{}, a.jobsOfNode()).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(a.jobsOfPod)).
		WithOptions(cfg.jobOptions()).Complete(guardcontrol.Reconciler(cfg.Guard, a.client, &v1beta1.ImagePullJob{}, conflict.Reconciler(&jobs{a})))
	if err != nil {
		return fmt.Errorf("set up ImagePullJobs: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("imagelistpulljob").For(&v1beta1.ImageListPullJob{}).
		Owns(&v1beta1.ImagePullJob{}).WithOptions(cfg.listOptions()).Complete(guardcontrol.Reconciler(cfg.Guard, a.client, &v1beta1.ImageListPullJob{}, conflict.Reconciler(&lists{a})))
	if err != nil {
		return fmt.Errorf("set up ImageListPullJobs: %w", err)
	}
	named := func(_ context.Context, key ctrl.Request) guard.Object {
		return guard.Object{Kind: "Namespace", Name: key.Name}
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("pullsecretcopy").Watches(&v1beta1.ImagePullJob{}, a.copiesOfJob()).
		WithOptions(cfg.options()).Complete(guardcontrol.Typed(cfg.Guard, conflict.Reconciler(&secretCopies{a}), named))
	if err != nil {
		return fmt.Errorf("set up copies of pull secrets: %w", err)
	}
	return nil
}

// options returns the options of a controller. With its rate limiter, retries happen soon after an outage of the API
// server has ended, and namespaces have separate retry rates. The default of controller-runtime waits up to 1,000 s.
func (c *Config) options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: c.Workers, NewQueue: faircontrol.Queue, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
	}
}

// jobOptions are the options for ImagePullJobs. Workers wait for the writes of NodeImages, which are made for several jobs together: one
// namespace has more of them than in other controllers, and there are twice as many in all.
func (c *Config) jobOptions() controller.Options {
	options := c.options()
	options.MaxConcurrentReconciles, options.NewQueue = 2*c.Workers, faircontrol.Limited(2*faircontrol.Share(c.Workers))
	return options
}

// listOptions are the options for ImageListPullJobs.
func (c *Config) listOptions() controller.Options {
	options := c.options()
	options.NewQueue = faircontrol.Limited(faircontrol.Share(c.Workers))
	return options
}

// later returns the result for a decision that requests another reconciliation at a time.
func (a *api) later(at recheck.At) ctrl.Result {
	return ctrl.Result{RequeueAfter: at.In(a.Clock(), time.Second)}
}

// done returns the result of the last write of a reconciliation. It ignores that the object is gone.
func done(err error) (ctrl.Result, error) { return ctrl.Result{}, client.IgnoreNotFound(err) }
