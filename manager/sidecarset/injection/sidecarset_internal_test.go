package injection

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
)

func admit(t *testing.T, stored, sent string, operation admissionv1.Operation, old string) admission.Response {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := &sidecarSetHandler{decoder: admission.NewDecoder(scheme), log: slog.New(slog.DiscardHandler),
		sets: fake.NewClientBuilder().WithScheme(scheme).WithObjects(sidecarSet(stored)).Build()}
	encode := func(text string) runtime.RawExtension {
		set := sidecarSet(text)
		set.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: v1beta1.KindSidecarSet}
		raw, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Object: encode(sent)}}
	if old != "" {
		request.OldObject = encode(old)
	}
	return h.Handle(t.Context(), request)
}

const otherSet = "metadata: {name: other}\nspec: {selector: {matchExpressions: [{key: inject, operator: Exists}]}, containers: [{name: agent, image: agent:1}]}"

func TestRefusedSidecarSetsNameTheField(t *testing.T) {
	t.Parallel()
	response := admit(t, otherSet, logSet, admissionv1.Create, "")
	if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
		t.Fatalf("got %+v", response)
	}
	if cause := response.Result.Details.Causes[0]; cause.Field != "spec.containers[0].name" || !strings.Contains(cause.Message, "SidecarSet other") {
		t.Errorf("got %+v", cause)
	}
}

func TestASidecarSetCanBeChangedDespiteAnOldClash(t *testing.T) {
	t.Parallel()
	if response := admit(t, otherSet, strings.Replace(logSet, "agent:1", "agent:2", 1), admissionv1.Update, logSet); !response.Allowed {
		t.Errorf("refused: %v", response.Result)
	}
}

func TestFailurePolicyBecomesALabel(t *testing.T) {
	t.Parallel()
	response := admit(t, "metadata: {name: none}", strings.Replace(logSet, "containers", "injectionStrategy: {failurePolicy: Fail}, containers", 1), admissionv1.Create, "")
	if !response.Allowed || len(response.Patches) != 1 || response.Patches[0].Path != "/metadata/labels" {
		t.Errorf("got %+v", response)
	}
}
