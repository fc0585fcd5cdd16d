package control

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// copiesDelay is how long to wait for the end of further jobs before copies are removed, because removal needs a list
// of all jobs.
const copiesDelay = time.Second

// secretCopies removes copies of pull secrets that no job needs any more.
type secretCopies struct{ *api }

// Reconcile implements reconcile.Reconciler, for the namespace of the copies.
func (c *secretCopies) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	return done(c.copies.Remove(ctx))
}
