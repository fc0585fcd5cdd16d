package control

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

const gatePath = "/mutate-v1-pod-readiness-gate"

// addGate registers the webhook that adds the readiness gate KruisePodReady to pods. The webhook configuration selects
// the pods. The webhook is served only if this manager also sets the initial value of the condition: until then a pod
// with the gate is not ready.
func addGate(mgr ctrl.Manager, cfg Config) {
	handler := admission.HandlerFunc(addReadinessGate)
	if !cfg.ReadinessGates {
		handler = allow
	}
	mgr.GetWebhookServer().Register(gatePath, guardcontrol.CheckReviews(guardcontrol.AllowingWebhook(cfg.Guard, handler)))
}

func allow(context.Context, admission.Request) admission.Response {
	return admission.Allowed("refit-manager adds no readiness gates")
}

// addReadinessGate answers the review of a pod that is being created. It does not change a pod that has the gate.
func addReadinessGate(_ context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create || request.SubResource != "" {
		return admission.Allowed("")
	}
	var pod struct {
		Spec struct {
			ReadinessGates []corev1.PodReadinessGate `json:"readinessGates"`
		} `json:"spec"`
	}
	if err := foreign.Object(request.Object.Raw, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode pod: %w", err))
	}
	gate := corev1.PodReadinessGate{ConditionType: v1beta1.ReadinessGateKruisePodReady}
	if slices.Contains(pod.Spec.ReadinessGates, gate) {
		return admission.Allowed("")
	}
	if len(pod.Spec.ReadinessGates) == 0 {
		return admission.Patched("", jsonpatch.NewOperation("add", "/spec/readinessGates", []corev1.PodReadinessGate{gate}))
	}
	return admission.Patched("", jsonpatch.NewOperation("add", "/spec/readinessGates/-", gate))
}
