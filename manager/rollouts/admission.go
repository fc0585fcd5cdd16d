package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout"
)

const admissionPath = "/mutate-refit-dev-restartrollout"

// addAdmission registers the mutating webhook, which records who has created a rollout.
func addAdmission(mgr ctrl.Manager, cfg Config) {
	mgr.GetWebhookServer().Register(admissionPath, &webhook.Admission{
		Handler: &admissionHandler{decoder: admission.NewDecoder(mgr.GetScheme()), cfg: cfg}, RecoverPanic: new(true),
	})
}

type admissionHandler struct {
	decoder admission.Decoder
	cfg     Config
}

// Handle implements admission.Handler.
func (h *admissionHandler) Handle(_ context.Context, request admission.Request) admission.Response {
	var sent v1alpha1.RestartRollout
	if err := h.decoder.Decode(request, &sent); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	name := request.Namespace + "/" + sent.Name
	switch request.Operation {
	case admissionv1.Create:
		admitted, err := rollout.Admit(&sent, request.UserInfo.Username)
		if err != nil {
			return h.refused(name, request.UserInfo.Username, err)
		}
		h.cfg.Logger.Info("RestartRollout admitted", "rollout", name, "user", request.UserInfo.Username)
		return annotated(&sent, admitted)
	case admissionv1.Update:
		var stored v1alpha1.RestartRollout
		if err := h.decoder.DecodeRaw(request.OldObject, &stored); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if err := rollout.AdmitUpdate(&stored, &sent); err != nil {
			return h.refused(name, request.UserInfo.Username, err)
		}
	}
	return admission.Allowed("")
}

func (h *admissionHandler) refused(name, user string, err error) admission.Response {
	h.cfg.Logger.Info("RestartRollout refused", "rollout", name, "user", user, "reason", err)
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: err.Error(),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: invalid.Field, Message: invalid.Message}}},
	}}}
}

// annotated allows the object with the annotations that it is to have, and leaves everything else as it was sent.
func annotated(sent, admitted *v1alpha1.RestartRollout) admission.Response {
	before, errBefore := json.Marshal(sent)
	after, errAfter := json.Marshal(admitted)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(before, after)
}
