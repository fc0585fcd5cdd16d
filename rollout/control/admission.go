package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/schedule"
)

const (
	admissionPath         = "/mutate-refit-dev-restartrollout"
	scheduleAdmissionPath = "/mutate-refit-dev-restartschedule"
)

// addAdmission registers the mutating webhooks, which record who has created a rollout or a schedule.
func addAdmission(mgr ctrl.Manager, cfg Config) {
	decoder, server := admission.NewDecoder(mgr.GetScheme()), mgr.GetWebhookServer()
	server.Register(admissionPath, guardcontrol.CheckReviews(guardcontrol.Webhook(cfg.Guard, rolloutAdmission(decoder, cfg))))
	server.Register(scheduleAdmissionPath, guardcontrol.CheckReviews(guardcontrol.Webhook(cfg.Guard, scheduleAdmission(decoder, cfg))))
}

func rolloutAdmission(decoder admission.Decoder, cfg Config) admission.Handler {
	return &admissionHandler[*v1alpha1.RestartRollout]{
		decoder: decoder, cfg: cfg, kind: v1alpha1.KindRestartRollout, empty: func() *v1alpha1.RestartRollout { return &v1alpha1.RestartRollout{} },
		create: func(sent *v1alpha1.RestartRollout, user string) (*v1alpha1.RestartRollout, error) {
			return rollout.Admit(sent, rollout.Requester{Name: user, Manager: user == cfg.User})
		},
		update: func(stored, sent *v1alpha1.RestartRollout, user string) (*v1alpha1.RestartRollout, error) {
			return sent, rollout.AdmitUpdate(stored, sent, rollout.Requester{Name: user, Manager: user == cfg.User})
		},
	}
}

func scheduleAdmission(decoder admission.Decoder, cfg Config) admission.Handler {
	return &admissionHandler[*v1alpha1.RestartSchedule]{
		decoder: decoder, cfg: cfg, kind: v1alpha1.KindRestartSchedule, empty: func() *v1alpha1.RestartSchedule { return &v1alpha1.RestartSchedule{} },
		create: schedule.Admit, update: schedule.AdmitUpdate,
	}
}

// admissionHandler admits the objects of one kind. create and update return the object to store.
type admissionHandler[T client.Object] struct {
	decoder admission.Decoder
	cfg     Config
	kind    string
	empty   func() T
	create  func(sent T, user string) (T, error)
	update  func(stored, sent T, user string) (T, error)
}

// Handle implements admission.Handler.
func (h *admissionHandler[T]) Handle(_ context.Context, request admission.Request) admission.Response {
	sent, user := h.empty(), request.UserInfo.Username
	if err := h.decoder.Decode(request, sent); err != nil {
		return admission.Errored(http.StatusBadRequest, foreign.FieldError(err))
	}
	name := request.Namespace + "/" + sent.GetName()
	admitted, err := sent, error(nil)
	switch request.Operation {
	case admissionv1.Create:
		admitted, err = h.create(sent, user)
	case admissionv1.Update:
		stored := h.empty()
		if err := h.decoder.DecodeRaw(request.OldObject, stored); err != nil {
			return admission.Errored(http.StatusBadRequest, foreign.FieldError(err))
		}
		admitted, err = h.update(stored, sent, user)
	}
	if err != nil {
		h.cfg.Logger.Info(h.kind+" refused", "name", name, "user", user, "reason", err)
		return refused(err)
	}
	if request.Operation == admissionv1.Create {
		h.cfg.Logger.Info(h.kind+" admitted", "name", name, "user", user)
	}
	return changed(sent, admitted)
}

func refused(err error) admission.Response {
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: err.Error(),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: invalid.Field, Message: invalid.Message}}},
	}}}
}

// changed allows the request with a patch that contains only the changes by admission.
func changed(sent, admitted any) admission.Response {
	before, errBefore := json.Marshal(sent)
	after, errAfter := json.Marshal(admitted)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(before, after)
}
