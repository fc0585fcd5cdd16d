package workload

import (
	"context"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// messageUnheld is the message if nothing holds workloads.
const messageUnheld = "nothing holds the workload when its template changes: set policies.hold=auto of the chart of Refit, or holdPolicy: ByOwner"

// heldInterval is the time between searches for the objects in heldBy.
const heldInterval = time.Minute

// The objects that make the API server hold workloads, or call the webhook that does.
var (
	holdPolicy  = heldBy{"MutatingAdmissionPolicyBinding", "refit-hold"}
	holdWebhook = heldBy{"MutatingWebhookConfiguration", "refit-manager-workloads"}
)

type heldBy struct{ kind, name string }

// holding caches what holds workloads.
type holding struct {
	mu     sync.Mutex
	looked time.Time
	found  bool
}

// unheld returns why nothing would hold the workload of the policy, "" if something would, or if that is not known.
func (r *reconciler) unheld(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy) string {
	if policy.Spec.HoldPolicy == v1alpha1.HoldByOwner {
		return ""
	}
	h := &r.holding
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := r.Clock(); now.Sub(h.looked) >= heldInterval {
		exists, known := r.exists(ctx, holdPolicy)
		h.looked, h.found = now, exists || !known
		if !h.found {
			exists, known = r.exists(ctx, holdWebhook)
			h.found = exists || !known
		}
	}
	if h.found {
		return ""
	}
	return messageUnheld
}

// exists reports whether an object exists, and whether that is known. Before Kubernetes 1.36 there is no kind
// MutatingAdmissionPolicyBinding.
func (r *reconciler) exists(ctx context.Context, by heldBy) (exists, known bool) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(by.kind))
	err := r.Live.Get(ctx, client.ObjectKey{Name: by.name}, object)
	if err == nil {
		return true, true
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, true
	}
	r.Logger.Warn("cannot read the object that holds workloads", "kind", by.kind, "name", by.name, "err", err)
	return false, false
}
