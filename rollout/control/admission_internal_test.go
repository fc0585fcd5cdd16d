package control

import (
	"encoding/json"
	"log/slog"
	"sort"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

func review(t *testing.T, operation admissionv1.Operation, sent, stored *v1alpha1.RestartRollout) admission.Response {
	t.Helper()
	return reviewBy(t, "alice", operation, sent, stored)
}

func reviewBy(t *testing.T, user string, operation admissionv1.Operation, sent, stored *v1alpha1.RestartRollout) admission.Response {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Namespace: "shop", UserInfo: authenticationv1.UserInfo{Username: user},
	}}
	for object, raw := range map[*v1alpha1.RestartRollout]*runtime.RawExtension{sent: &request.Object, stored: &request.OldObject} {
		if object == nil {
			continue
		}
		object.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindRestartRollout}
		encoded, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		raw.Raw = encoded
	}
	handler := rolloutAdmission(admission.NewDecoder(kinds), Config{Logger: slog.New(slog.DiscardHandler), User: "refit-manager"})
	return handler.Handle(t.Context(), request)
}

func TestRequesterIsRecordedWhateverIsSent(t *testing.T) {
	t.Parallel()
	sent := object()
	sent.Annotations = map[string]string{v1beta1.AnnotationRequestedBy: "root", v1beta1.AnnotationReason: "leak"}
	response := review(t, admissionv1.Create, sent, nil)
	patches, err := json.Marshal(response.Patches)
	if err != nil || !response.Allowed || string(patches) != `[{"op":"replace","path":"/metadata/annotations/refit.dev~1requested-by","value":"alice"}]` {
		t.Errorf("%v, %v: %s", response.Allowed, err, patches)
	}
}

func TestRefusalsNameTheField(t *testing.T) {
	t.Parallel()
	reason := object()
	reason.Annotations = map[string]string{v1beta1.AnnotationReason: "two\nlines"}
	selector := object(func(s *v1alpha1.RestartRolloutSpec) {
		s.TargetRef, s.Selector = nil, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Equals"}}}
	})
	forged, stored := object(), object()
	stored.Annotations = map[string]string{v1beta1.AnnotationRequestedBy: "bob"}
	for field, response := range map[string]admission.Response{
		"metadata.annotations[refit.dev/reason]":       review(t, admissionv1.Create, reason, nil),
		"spec.selector":                                review(t, admissionv1.Create, selector, nil),
		"metadata.annotations[refit.dev/requested-by]": review(t, admissionv1.Update, forged, stored),
	} {
		if response.Allowed || response.Result.Code != 400 || response.Result.Details.Causes[0].Field != field || !strings.HasPrefix(response.Result.Message, field+": ") {
			t.Errorf("%s: %+v", field, response)
		}
	}
}

func TestOtherUpdatesAreAllowed(t *testing.T) {
	t.Parallel()
	if response := review(t, admissionv1.Update, object(func(s *v1alpha1.RestartRolloutSpec) { s.Paused = true }), object()); !response.Allowed {
		t.Errorf("%+v", response)
	}
}

func TestRolloutOfTheManagerKeepsForWhomItIs(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{
		"refit-manager": `[]`, // nothing is changed
		"alice":         `[{"op":"remove","path":"/metadata/annotations/refit.dev~1trigger"},{"op":"replace","path":"/metadata/annotations/refit.dev~1requested-by","value":"alice"}]`,
	} {
		sent := object()
		sent.Annotations = map[string]string{v1beta1.AnnotationRequestedBy: "bob", v1alpha1.AnnotationTrigger: "RestartSchedule/nightly"}
		response := reviewBy(t, user, admissionv1.Create, sent, nil)
		sort.Slice(response.Patches, func(i, j int) bool { return response.Patches[i].Operation < response.Patches[j].Operation })
		patches, err := json.Marshal(response.Patches)
		if err != nil || !response.Allowed || string(patches) != want {
			t.Errorf("%s: %v, %v: %s", user, response.Allowed, err, patches)
		}
	}
}
