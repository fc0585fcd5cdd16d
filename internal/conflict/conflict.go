// Package conflict lets reconcilers of refit-manager retry writes that the API server has refused because the object was
// changed meanwhile. It does not know what they decide.
package conflict

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Delays before an object is reconciled again after a conflict. Usually the watch event of the newer version comes earlier
// and causes a reconciliation. While the watch is interrupted, for up to a minute, the same write is refused each time.
const (
	First = 500 * time.Millisecond
	Most  = 16 * time.Second
)

// Is reports whether a write failed because of another writer: the object has changed, or it exists already. Users need not
// know about such errors.
func Is(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// Reconciler returns a reconciler that turns conflicts into a requeue of the object, after twice the previous delay while
// they follow each other. Other results and errors are not changed.
func Reconciler[R comparable](of reconcile.TypedReconciler[R]) reconcile.TypedReconciler[R] {
	d := delays[R]{last: map[R]time.Duration{}}
	return reconcile.TypedFunc[R](func(ctx context.Context, key R) (ctrl.Result, error) {
		result, err := of.Reconcile(ctx, key)
		if !Is(err) {
			d.forget(key)
			return result, err
		}
		return ctrl.Result{RequeueAfter: d.next(key)}, nil
	})
}

// delays holds the last delay of each object whose last reconciliation was a conflict.
type delays[R comparable] struct {
	mu   sync.Mutex
	last map[R]time.Duration
}

func (d *delays[R]) next(key R) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last[key] = min(max(2*d.last[key], First), Most)
	return d.last[key]
}

func (d *delays[R]) forget(key R) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.last, key)
}
