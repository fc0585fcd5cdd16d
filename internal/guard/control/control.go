// Package control guards reconcilers and webhooks of controller-runtime, and the informers of its cache: a panic is
// reported on the object that is reconciled, reviewed or watched. It does not know what the code does.
package control

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/guard/informer"
)

// Places where errs are counted.
const (
	whereReconcile = "reconcile"
	whereAdmission = "admission"
)

// eventNotHandled is the reason of the Event about an object whose handling has failed.
const eventNotHandled = "NotHandled"

// NewInformer is for the options of a cache: its informers are guarded.
func NewInformer(g *guard.Guard) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(source toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return informer.Guard(toolscache.NewSharedIndexInformer(source, kind, resync, informer.Indexers(indexers, g)), g)
	}
}

// Reconciler guards a reconciler of objects of a kind, which are read from cached to name them. controller-runtime recovers
// panics of reconcilers too, but does not report the object.
func Reconciler(g *guard.Guard, cached client.Reader, kind client.Object, of reconcile.Reconciler) reconcile.Reconciler {
	return Typed(g, of, func(ctx context.Context, key ctrl.Request) guard.Object {
		return Find(ctx, cached, kind, key.NamespacedName)
	})
}

// Typed is Reconciler for another type of requests; name returns their object.
func Typed[R comparable](g *guard.Guard, of reconcile.TypedReconciler[R], name func(context.Context, R) guard.Object) reconcile.TypedReconciler[R] {
	return reconcile.TypedFunc[R](func(ctx context.Context, key R) (result ctrl.Result, err error) {
		err = g.Do(whereReconcile, func() guard.Object { return name(ctx, key) }, func() error {
			var err error
			result, err = of.Reconcile(ctx, key)
			return err
		})
		if guard.Is(err) {
			result = ctrl.Result{}
		}
		return result, err
	})
}

// Find names the object of a kind. An object that does not exist any more has no UID.
func Find(ctx context.Context, cached client.Reader, kind client.Object, key types.NamespacedName) guard.Object {
	object, ok := kind.DeepCopyObject().(client.Object)
	if ok && cached.Get(ctx, key, object) == nil {
		return guard.Of(object)()
	}
	named := guard.Of(kind)()
	named.Namespace, named.Name = key.Namespace, key.Name
	return named
}

// Webhook returns a webhook with the handler. A panic is answered as an internal error, which refuses the request, without
// waiting for the timeout.
func Webhook(g *guard.Guard, handler admission.Handler) *admission.Webhook {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, request admission.Request) (response admission.Response) {
		subject := func() guard.Object {
			return guard.Object{Kind: request.Kind.Kind, Namespace: request.Namespace, Name: request.Name}
		}
		if !g.Try(whereAdmission, subject, func() { response = handler.Handle(ctx, request) }) {
			return admission.Errored(http.StatusInternalServerError, errors.New("refit-manager cannot review this object; its log says why"))
		}
		return response
	})}
}

// AllowingWebhook is Webhook for optional additions: after a panic the object is allowed unchanged, with a warning.
func AllowingWebhook(g *guard.Guard, handler admission.Handler) *admission.Webhook {
	guarded := Webhook(g, handler).Handler
	return &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := guarded.Handle(ctx, request)
		if response.Allowed {
			return response
		}
		return admission.Allowed("").WithWarnings("refit-manager adds nothing to this object: " + response.Result.Message)
	})}
}

// Report reports a fault by an Event.
func Report(recorder events.EventRecorder, object guard.Object, message string) {
	about := &corev1.ObjectReference{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, UID: types.UID(object.UID)}
	recorder.Eventf(about, nil, corev1.EventTypeWarning, eventNotHandled, "Handle", "%s", message)
}
