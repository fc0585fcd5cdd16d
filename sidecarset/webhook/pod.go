package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/podfields"
)

// maxReview limits a review, in bytes: an object may have 1.5 MiB, and 3 MiB as JSON.
const maxReview = foreign.MaxObject

// maxError limits the error message for a review that cannot be answered, in bytes.
const maxError = 1 << 10

// podHandler answers reviews of new pods.
//
// If a review cannot be answered, it returns an HTTP error and not a refusal, so that the failurePolicy of the webhook
// decides.
type podHandler struct {
	index      *index
	namespaces *namespaces
	now        func() time.Time
	counts     *prometheus.CounterVec
	guard      *guard.Guard
	reviews    *guard.Slots // reviews in progress
	log        *slog.Logger
}

// ServeHTTP implements http.Handler.
func (h *podHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := h.review(r)
	if err == nil {
		err = json.NewEncoder(w).Encode(response)
	}
	if err != nil {
		h.counts.WithLabelValues("failed").Inc()
		h.log.Error("review of a pod cannot be answered", "err", err)
		http.Error(w, foreign.Shorten(err.Error(), maxError), http.StatusInternalServerError)
	}
}

func (h *podHandler) review(r *http.Request) (*admissionv1.AdmissionReview, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReview))
	if err != nil {
		return nil, fmt.Errorf("read review: %w", err)
	}
	var review admissionv1.AdmissionReview
	if err := foreign.Object(body, &review); err != nil {
		return nil, fmt.Errorf("decode review: %w", err)
	}
	if review.Request == nil {
		return nil, errors.New("decode review: it has no request")
	}
	response, err := h.answerInTime(r.Context(), review.Request, r.URL.Query().Get("timeout"))
	if err != nil {
		return nil, err
	}
	response.UID = review.Request.UID
	return &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response}, nil
}

// header is the part of a pod that determines whether it is selected.
type header struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

func (h *podHandler) answer(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	allowed := &admissionv1.AdmissionResponse{Allowed: true}
	if request.Operation != admissionv1.Create || request.Resource.Resource != "pods" || request.SubResource != "" {
		return allowed, nil
	}
	candidates := h.index.candidates.Load()
	if candidates == nil {
		return nil, errors.New("the SidecarSets have not been read yet")
	}
	var pod header
	if err := foreign.Object(request.Object.Raw, &pod); err != nil {
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	selected, err := h.selected(ctx, *candidates, request.Namespace, pod.Metadata.Labels)
	if err != nil {
		return nil, err
	}
	if len(selected) == 0 || pod.Metadata.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		h.counts.WithLabelValues("unmatched").Inc()
		return allowed, nil
	}
	subject := choice.Subject{Labels: pod.Metadata.Labels, Annotations: pod.Metadata.Annotations, Key: string(request.UID)}
	if pod.Metadata.Name != "" {
		subject.Key = request.Namespace + "/" + pod.Metadata.Name
	}
	plan, warnings, err := choice.Choose(subject, selected)
	var result inject.Result
	if err == nil {
		result, err = podfields.Inject(request.Object.Raw, plan, selected, h.now())
	}
	var refusal *inject.Refusal
	if errors.As(err, &refusal) {
		h.counts.WithLabelValues("refused").Inc()
		h.log.Info("pod refused", "namespace", request.Namespace, "name", pod.Metadata.Name, "user", request.UserInfo.Username, "reason", err)
		return refused(refusal), nil
	}
	if err != nil {
		return nil, err
	}
	return h.patched(allowed, plan, result, warnings)
}

func (h *podHandler) patched(allowed *admissionv1.AdmissionResponse, plan inject.Plan, result inject.Result, warnings []string) (*admissionv1.AdmissionResponse, error) {
	outcome := "injected"
	if len(plan.Sets) == 0 {
		outcome = "skipped"
	}
	allowed.Warnings = slices.Concat(warnings, result.Warnings)
	if len(result.Patch) > 0 {
		patch, err := json.Marshal(result.Patch)
		if err != nil {
			return nil, fmt.Errorf("encode patch: %w", err)
		}
		kind := admissionv1.PatchTypeJSONPatch
		allowed.Patch, allowed.PatchType = patch, &kind
	}
	h.counts.WithLabelValues(outcome).Inc()
	return allowed, nil
}

// selected returns the candidates that select the pod. It reads the labels of the namespace only if they matter.
func (h *podHandler) selected(ctx context.Context, candidates []*choice.Candidate, namespace string, podLabels map[string]string) ([]*choice.Candidate, error) {
	var selected []*choice.Candidate
	var namespaceLabels map[string]string
	read := false
	for _, c := range candidates {
		if !c.Selector.Pod(podLabels) {
			continue
		}
		if c.Selector.NeedsNamespace() && !read {
			var err error
			if namespaceLabels, err = h.namespaces.labels(ctx, namespace); err != nil {
				return nil, err
			}
			read = true
		}
		if c.Selector.Namespace(namespace, namespaceLabels) {
			selected = append(selected, c)
		}
	}
	return selected, nil
}

func refused(refusal *inject.Refusal) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: refusal.Error(),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldValueInvalid, Field: refusal.Field, Message: refusal.Message,
		}}},
	}}
}
