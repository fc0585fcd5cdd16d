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

// messageUnheld is what the user of a policy has to do if nothing holds its workload.
const messageUnheld = "nothing holds the workload when its template changes: set policies.hold=auto of the chart of Refit, or holdPolicy: ByOwner"

// heldAge is how long an answer of unheld is used.
const heldAge = time.Minute

// heldBy are the objects by which the API server holds workloads, or calls the webhook.
var heldBy = map[string]string{"MutatingAdmissionPolicyBinding": "refit-hold", "MutatingWebhookConfiguration": "refit-manager-workloads"}

// holding remembers whether anything holds workloads.
type holding struct {
	mu     sync.Mutex
	looked time.Time
	found  bool
}

// unheld says why nothing would hold the workload of the policy; "" if something would, or if that is not known.
func (r *reconciler) unheld(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy) string {
	if policy.Spec.HoldPolicy == v1alpha1.HoldByOwner {
		return ""
	}
	h := &r.holding
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := r.Clock(); now.Sub(h.looked) >= heldAge {
		h.looked, h.found = now, r.looksHeld(ctx)
	}
	if h.found {
		return ""
	}
	return messageUnheld
}

// looksHeld reports whether one of the objects exists. Before Kubernetes 1.36 there is no kind MutatingAdmissionPolicyBinding.
func (r *reconciler) looksHeld(ctx context.Context) bool {
	for kind, name := range heldBy {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
		err := r.Live.Get(ctx, client.ObjectKey{Name: name}, object)
		if err == nil {
			return true
		}
		if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			r.Logger.Warn("look for what holds workloads", "kind", kind, "name", name, "err", err)
			return true // not known
		}
	}
	return false
}
