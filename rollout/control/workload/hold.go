package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/rollout/workload"
)

// holdPath is the path of the webhook that holds workloads before Kubernetes 1.36.
const holdPath = "/mutate-apps-v1-workload"

// addHold registers the webhook. Clusters with the MutatingAdmissionPolicy have no configuration for it.
func addHold(mgr ctrl.Manager, cfg Config) {
	handler := &holder{decoder: admission.NewDecoder(mgr.GetScheme()), Config: cfg}
	mgr.GetWebhookServer().Register(holdPath, guardcontrol.CheckReviews(guardcontrol.AllowingWebhook(cfg.Guard, handler)))
}

// holder holds workloads in the write that changes their template.
type holder struct {
	Config
	decoder admission.Decoder
}

// decode decodes a workload after a check of its bounds: a quantity with a large exponent would take minutes.
func (h *holder) decode(sent runtime.RawExtension, into client.Object) error {
	if err := foreign.CheckObject(sent.Raw, into); err != nil {
		return err
	}
	return h.decoder.DecodeRaw(sent, into)
}

// Handle implements admission.Handler. An error does not refuse the write: AllowingWebhook makes it a warning.
func (h *holder) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.UserInfo.Username == h.User {
		return admission.Allowed("")
	}
	before, after := workload.NewObject(request.Kind.Kind), workload.NewObject(request.Kind.Kind)
	if err := errors.Join(h.decode(request.OldObject, before), h.decode(request.Object, after)); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("the workload is not held: decode %s: %w", request.Kind.Kind, err))
	}
	// Not from the cache, which is empty until the manager has read everything.
	var policies v1alpha1.InPlaceUpdatePolicyList
	if err := h.Live.List(ctx, &policies, client.InNamespace(request.Namespace)); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("the workload is not held, because InPlaceUpdatePolicies cannot be read: %w", err))
	}
	written := must.JSON(after)
	policy := workload.Hold(policies.Items, before, after)
	if policy == nil {
		return admission.Allowed("")
	}
	h.Logger.Info("workload held", "kind", request.Kind.Kind, "workload", request.Namespace+"/"+request.Name, "policy", policy.Name, "user", request.UserInfo.Username)
	return admission.PatchResponseFromRaw(written, must.JSON(after))
}
