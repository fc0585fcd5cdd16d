package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
	crradmission "github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/foreign"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

const admissionPath = "/mutate-apps-kruise-io-containerrecreaterequest"

// addAdmission registers the mutating webhook. The webhook configuration names v1beta1 with matchPolicy Equivalent, so
// the API server converts v1alpha1 requests before it sends the review, and one set of rules is enough.
func addAdmission(mgr ctrl.Manager, cfg Config) error {
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_manager_crr_admission_answers_total",
		Help: "Admission reviews of ContainerRecreateRequests answered, by operation and HTTP status code.",
	}, []string{"operation", "code"})
	if err := cfg.Metrics.Register(answers); err != nil {
		return err
	}
	handler := &admissionHandler{
		decoder: admission.NewDecoder(mgr.GetScheme()), pods: mgr.GetAPIReader(), nodes: cfg.Nodes,
		self: cfg.User, now: time.Now, answers: answers, tracer: cfg.Tracer, log: cfg.Logger,
	}
	mgr.GetWebhookServer().Register(admissionPath, guardcontrol.CheckReviews(guardcontrol.Webhook(cfg.Guard, handler)))
	return nil
}

// admissionHandler answers admission reviews of ContainerRecreateRequests. Package admission decides.
//
// The handler reads pods from the API server and not from the cache: one read per request costs little, it finds pods
// that were created a moment ago, and it returns the newest container IDs.
type admissionHandler struct {
	decoder admission.Decoder
	pods    client.Reader
	nodes   cache.Nodes
	self    string // the manager's own user name
	now     func() time.Time
	answers *prometheus.CounterVec
	tracer  trace.Tracer
	log     *slog.Logger
}

// Handle implements admission.Handler.
func (h *admissionHandler) Handle(ctx context.Context, request admission.Request) admission.Response {
	response := h.answer(ctx, request)
	code := int32(http.StatusOK)
	if !response.Allowed {
		code = response.Result.Code
		h.log.Info("request refused", "request", request.Namespace+"/"+request.Name, "user", request.UserInfo.Username,
			"code", code, "reason", response.Result.Message)
	}
	if response.Allowed && request.Operation == admissionv1.Create {
		h.log.Info("request admitted", "request", request.Namespace+"/"+request.Name, "user", request.UserInfo.Username)
	}
	h.answers.WithLabelValues(string(request.Operation), strconv.Itoa(int(code))).Inc()
	return response
}

func (h *admissionHandler) answer(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" {
		return admission.Allowed("")
	}
	var sent, admitted *v1beta1.ContainerRecreateRequest
	var warnings []string
	var err error
	switch request.Operation {
	case admissionv1.Create:
		sent, admitted, warnings, err = h.create(ctx, request)
	case admissionv1.Update:
		sent, admitted, err = h.update(request)
	default:
		return admission.Allowed("")
	}
	if err != nil {
		return errorResponse(err)
	}
	response := patchResponse(sent, admitted)
	response.Warnings = warnings
	return response
}

func (h *admissionHandler) create(ctx context.Context, request admission.Request) (sent, admitted *v1beta1.ContainerRecreateRequest, warnings []string, err error) {
	sent = &v1beta1.ContainerRecreateRequest{}
	if err := h.decoder.Decode(request, sent); err != nil {
		return nil, nil, nil, apierrors.NewBadRequest(foreign.FieldError(err).Error())
	}
	sent.Namespace = request.Namespace
	if err := crradmission.CheckRequest(sent); err != nil {
		return nil, nil, nil, err // before an unchecked name is used in a lookup
	}
	ctx, span := startTrace(ctx, h.tracer, request, sent)
	defer func() { endTrace(ctx, span, admitted, err) }()
	user := request.UserInfo.Username
	observed := crradmission.Observation{User: user, OnBehalf: user != "" && user == h.self, Now: h.now()}
	if observed.Pod, err = h.pod(ctx, sent); err != nil {
		return nil, nil, nil, err
	}
	if observed.Pod != nil && observed.Pod.Spec.NodeName != "" {
		if observed.Node, err = h.nodes.Find(ctx, observed.Pod.Spec.NodeName); err != nil {
			return nil, nil, nil, err
		}
	}
	if warning := podrules.NotDrained(sent, observed.Pod); warning != "" {
		warnings = append(warnings, warning)
	}
	admitted, err = crradmission.Admit(sent, observed)
	return sent, admitted, warnings, err
}

func (h *admissionHandler) update(request admission.Request) (sent, admitted *v1beta1.ContainerRecreateRequest, err error) {
	var stored v1beta1.ContainerRecreateRequest
	sent = &v1beta1.ContainerRecreateRequest{}
	if err := errors.Join(h.decoder.Decode(request, sent), h.decoder.DecodeRaw(request.OldObject, &stored)); err != nil {
		return nil, nil, apierrors.NewBadRequest(foreign.FieldError(err).Error())
	}
	admitted, err = crradmission.AdmitUpdate(&stored, sent)
	return sent, admitted, err
}

func (h *admissionHandler) pod(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := h.pods.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}, &pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find pod %s: %w", request.Spec.PodName, err)
	}
	return &pod, nil
}

// errorResponse returns 4xx for requests that break a rule, and 500 for failed lookups.
func errorResponse(err error) admission.Response {
	var refusal *crradmission.Refusal
	if !errors.As(err, &refusal) {
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code == http.StatusBadRequest {
			return admission.Errored(http.StatusBadRequest, err)
		}
		return admission.Errored(http.StatusInternalServerError, err)
	}
	reason := metav1.StatusReasonBadRequest
	switch refusal.Code {
	case http.StatusForbidden:
		reason = metav1.StatusReasonForbidden
	case http.StatusConflict:
		reason = metav1.StatusReasonConflict
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: refusal.Code, Reason: reason, Message: refusal.Error(),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldValueInvalid, Field: refusal.Field, Message: refusal.Message,
		}}},
	}}}
}

// patchResponse allows the request with a patch from the sent to the admitted object. Both are encoded from the same
// types, so that the patch does not remove fields unknown to these types.
func patchResponse(sent, admitted *v1beta1.ContainerRecreateRequest) admission.Response {
	before, errBefore := json.Marshal(sent)
	after, errAfter := json.Marshal(admitted)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(before, after)
}
