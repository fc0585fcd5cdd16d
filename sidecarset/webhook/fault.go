package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/sidecarset/choice"
)

const (
	// where is the label under which panics are counted.
	where = "injection"
	// reviewTimeout is the timeout in the webhook's configuration, for requests that do not name one. longest is the
	// maximum timeout that is accepted from a request.
	reviewTimeout = 5 * time.Second
	longest       = 30 * time.Second
	// parallelReviews limits concurrent reviews. Injection cannot be cancelled: a review that continues after its
	// deadline keeps its slot. If all slots are used, further reviews are answered as if they had failed.
	parallelReviews = 64
	// stopTimeout is how long to wait for reviews in progress when the program ends.
	stopTimeout = 5 * time.Second
	// lookTimeout limits reads from the cache after a failure.
	lookTimeout = 100 * time.Millisecond
)

// answerWithin returns how long a review may take. The API server gives its timeout in the URL; a fifth of it is
// reserved for the transmission. If the API server reached its timeout, it would create the pod unchanged.
func answerWithin(timeout string) time.Duration {
	waits, err := time.ParseDuration(timeout)
	if err != nil || waits <= 0 || waits > longest {
		waits = reviewTimeout
	}
	return waits - waits/5
}

// answerInTime answers before the API server's timeout. It also answers after a panic or a deadline, so that only this
// pod is affected.
func (h *podHandler) answerInTime(ctx context.Context, request *admissionv1.AdmissionRequest, timeout string) (*admissionv1.AdmissionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin(timeout))
	defer cancel()
	subject := guard.Named(guard.Object{Kind: "Pod", Namespace: request.Namespace, Name: request.Name})
	response, err := guard.Within(ctx, h.guard, h.reviews, where, subject, func() (*admissionv1.AdmissionResponse, error) { return h.answer(ctx, request) })
	if guard.Is(err) {
		h.counts.WithLabelValues("failed").Inc()
		return h.answerFailure(ctx, request, err), nil
	}
	return response, err
}

// answerFailure returns the answer after a failure: a refusal if a SidecarSet with failurePolicy Fail may select the
// pod, and otherwise a warning.
func (h *podHandler) answerFailure(ctx context.Context, request *admissionv1.AdmissionRequest, cause error) *admissionv1.AdmissionResponse {
	required := ""
	var silent *guard.Guard // the failure has already been reported
	looked := silent.Try(where, nil, func() { required = h.required(ctx, request) })
	message := fmt.Sprintf("refit-manager could not inject the containers of SidecarSets into this pod (%v); its log says more", cause)
	if looked && required == "" {
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{message}}
	}
	if required != "" {
		message = fmt.Sprintf("SidecarSet %s has failurePolicy Fail: %s", required, message)
	}
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: message,
	}}
}

// required returns a SidecarSet with failurePolicy Fail that may select the pod, or "". If the labels of the namespace
// are unknown, the namespace counts as selected.
func (h *podHandler) required(ctx context.Context, request *admissionv1.AdmissionRequest) string {
	candidates := h.index.candidates.Load()
	var pod header
	if candidates == nil || json.Unmarshal(request.Object.Raw, &pod) != nil {
		return ""
	}
	for _, c := range *candidates {
		if c.SidecarSet.Spec.InjectionStrategy.FailurePolicy == v1beta1.InjectionFail && c.Selector.Pod(pod.Metadata.Labels) && h.maySelect(ctx, c, request.Namespace) {
			return c.SidecarSet.Name
		}
	}
	return ""
}

func (h *podHandler) maySelect(ctx context.Context, c *choice.Candidate, namespace string) bool {
	if !c.Selector.NeedsNamespace() {
		return c.Selector.Namespace(namespace, nil)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	object := partialNamespace()
	err := h.namespaces.cached.Get(ctx, namespaceKey(namespace), object)
	return err != nil || c.Selector.Namespace(namespace, object.Labels)
}

// Start implements manager.Runnable. When the program ends, it waits for reviews in progress.
func (h *podHandler) Start(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if !h.reviews.Wait(ctx) {
		h.log.Warn("reviews of pods are left that do not end")
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Every replica serves the webhook.
func (*podHandler) NeedLeaderElection() bool { return false }
