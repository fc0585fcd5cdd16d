package manager

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
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

const admissionPath = "/mutate-apps-kruise-io-containerrecreaterequest"

// addAdmission serves the mutating webhook. Its configuration names v1beta1 and matches equivalent versions, so the
// API server has converted a v1alpha1 request before it arrives, and there is one set of rules.
func addAdmission(mgr ctrl.Manager, cfg Config) error {
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_manager_admission_answers_total",
		Help: "Answers to ContainerRecreateRequests being created or changed, by operation and HTTP status code.",
	}, []string{"operation", "code"})
	if err := metrics.Registry.Register(answers); err != nil {
		return err
	}
	handler := &admitter{
		decoder: admission.NewDecoder(mgr.GetScheme()), pods: mgr.GetAPIReader(), nodes: mgr.GetClient(), liveNodes: mgr.GetAPIReader(),
		now: time.Now, answers: answers, log: cfg.Logger,
	}
	survive := true
	mgr.GetWebhookServer().Register(admissionPath, &admission.Webhook{Handler: handler, RecoverPanic: &survive})
	return nil
}

// admitter answers for ContainerRecreateRequests with what crr decides.
//
// Pods are read live: one read per request costs little, a pod created a moment ago is found, and the instances that
// are recorded are the newest known. Nodes come and go slowly; a cached one is good enough, a missing one is not.
type admitter struct {
	decoder          admission.Decoder
	pods             client.Reader
	nodes, liveNodes client.Reader
	now              func() time.Time
	answers          *prometheus.CounterVec
	log              *slog.Logger
}

// Handle implements admission.Handler.
func (a *admitter) Handle(ctx context.Context, request admission.Request) admission.Response {
	response := a.answer(ctx, request)
	code := int32(http.StatusOK)
	if !response.Allowed {
		code = response.Result.Code
		a.log.Info("request refused", "request", request.Namespace+"/"+request.Name, "user", request.UserInfo.Username,
			"code", code, "reason", response.Result.Message)
	}
	a.answers.WithLabelValues(string(request.Operation), strconv.Itoa(int(code))).Inc()
	return response
}

func (a *admitter) answer(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" {
		return admission.Allowed("")
	}
	var sent, admitted *v1beta1.ContainerRecreateRequest
	var err error
	switch request.Operation {
	case admissionv1.Create:
		sent, admitted, err = a.create(ctx, request)
	case admissionv1.Update:
		sent, admitted, err = a.update(request)
	default:
		return admission.Allowed("")
	}
	if err != nil {
		return refuse(err)
	}
	return patch(sent, admitted)
}

func (a *admitter) create(ctx context.Context, request admission.Request) (sent, admitted *v1beta1.ContainerRecreateRequest, err error) {
	sent = &v1beta1.ContainerRecreateRequest{}
	if err := a.decoder.Decode(request, sent); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	sent.Namespace = request.Namespace
	if err := crr.CheckRequest(sent); err != nil {
		return nil, nil, err // nothing is looked up under a name that cannot be one
	}
	facts := crr.Facts{Now: a.now()}
	if facts.Pod, err = a.pod(ctx, sent); err != nil {
		return nil, nil, err
	}
	if facts.Pod != nil && facts.Pod.Spec.NodeName != "" {
		if facts.Node, err = findNode(ctx, facts.Pod.Spec.NodeName, a.nodes, a.liveNodes); err != nil {
			return nil, nil, err
		}
	}
	admitted, err = crr.Admit(sent, facts)
	return sent, admitted, err
}

func (a *admitter) update(request admission.Request) (sent, admitted *v1beta1.ContainerRecreateRequest, err error) {
	var stored v1beta1.ContainerRecreateRequest
	sent = &v1beta1.ContainerRecreateRequest{}
	if err := errors.Join(a.decoder.Decode(request, sent), a.decoder.DecodeRaw(request.OldObject, &stored)); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	admitted, err = crr.AdmitUpdate(&stored, sent)
	return sent, admitted, err
}

func (a *admitter) pod(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := a.pods.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}, &pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find pod %s: %w", request.Spec.PodName, err)
	}
	return &pod, nil
}

// findNode returns the metadata of a node from the first reader that has it; nil when none does.
func findNode(ctx context.Context, name string, readers ...client.Reader) (*metav1.ObjectMeta, error) {
	for _, reader := range readers {
		var node metav1.PartialObjectMetadata
		node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		err := reader.Get(ctx, client.ObjectKey{Name: name}, &node)
		if err == nil {
			return &node.ObjectMeta, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("find node %s: %w", name, err)
		}
	}
	return nil, nil
}

// refuse tells a rule that was broken from a look-up that failed.
func refuse(err error) admission.Response {
	var refusal *crr.Refusal
	if !errors.As(err, &refusal) {
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code == http.StatusBadRequest {
			return admission.Errored(http.StatusBadRequest, err)
		}
		return admission.Errored(http.StatusInternalServerError, err)
	}
	reason := metav1.StatusReasonBadRequest
	if refusal.Code == http.StatusForbidden {
		reason = metav1.StatusReasonForbidden
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: refusal.Code, Reason: reason, Message: refusal.Error(),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldValueInvalid, Field: refusal.Field, Message: refusal.Message,
		}}},
	}}}
}

// patch answers with the difference between what was read and what is to be stored. Both go through the same types,
// so that fields which these do not know are left alone.
func patch(sent, admitted *v1beta1.ContainerRecreateRequest) admission.Response {
	before, errBefore := json.Marshal(sent)
	after, errAfter := json.Marshal(admitted)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(before, after)
}
