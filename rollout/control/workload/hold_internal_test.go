package workload

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/internal/must"
)

const manager = "system:serviceaccount:refit-system:refit-manager"

// write has the webhook review a change of the image in a namespace. Pairs of texts are replaced in the JSON of the new object.
func (w *world) write(user, namespace string, change ...string) admission.Response {
	w.t.Helper()
	before := w.deployment()
	before.APIVersion, before.Kind = appsv1.SchemeGroupVersion.String(), "Deployment"
	after := before.DeepCopy()
	after.Spec.Template.Spec.Containers[0].Image = "app:2"
	object := strings.NewReplacer(change...).Replace(string(must.JSON(after)))
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Namespace: namespace, Name: "web", Kind: metav1.GroupVersionKind(appsKind("Deployment")), UserInfo: authenticationv1.UserInfo{Username: user},
		Object: runtime.RawExtension{Raw: []byte(object)}, OldObject: runtime.RawExtension{Raw: must.JSON(before)},
	}}
	cfg := w.r.Config
	cfg.User = manager
	return guardcontrol.AllowingWebhook(cfg.Guard, &holder{decoder: admission.NewDecoder(w.Scheme()), Config: cfg}).Handler.Handle(w.t.Context(), request)
}

func TestWebhookHoldsTheWorkloadOfAPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range map[string]struct{ user, namespace, want string }{
		"alice":             {"alice", "shop", `[{"op":"add","path":"/metadata/labels/refit.dev~1held","value":"true"},{"op":"add","path":"/spec/paused","value":true}]`},
		"refit-manager":     {manager, "shop", `null`},
		"another namespace": {"alice", "bank", `null`},
	} {
		response := w.write(tc.user, tc.namespace)
		sort.Slice(response.Patches, func(i, j int) bool { return response.Patches[i].Path < response.Patches[j].Path })
		patches, err := json.Marshal(response.Patches)
		if err != nil || !response.Allowed || string(patches) != tc.want {
			t.Errorf("%s: allowed %t, %v: %s", name, response.Allowed, err, patches)
		}
	}
}

func TestWorkloadCanBeChangedWhilePoliciesCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.r.Live = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("planted")
	}})
	response := w.write("alice", "shop")
	if !response.Allowed || len(response.Patches) > 0 || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "not held, because InPlaceUpdatePolicies cannot be read: planted") {
		t.Errorf("%+v", response)
	}
}

// The comparison of two quantities with such an exponent takes minutes, or panics.
func TestTemplateThatMustNotBeComparedIsNotHeld(t *testing.T) {
	t.Parallel()
	response := newWorld(t).write("alice", "shop", `"resources":{}`, `"resources":{"requests":{"cpu":"1e2147483647"}}`)
	if !response.Allowed || len(response.Patches) > 0 || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "the workload is not held: decode Deployment: spec: template: spec: containers: resources: requests: cpu: not readable") {
		t.Errorf("%+v", response)
	}
}

func TestPolicySaysThatNothingHoldsItsWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.condition("web", v1alpha1.ConditionStalled); got != "" {
		t.Errorf("held by the API server: Stalled %s", got)
	}
	w.check(w.Delete(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "refit-hold"}}))
	w.now = w.now.Add(heldInterval)
	w.rounds(1)
	if got := w.condition("web", v1alpha1.ConditionStalled); got != "True NotHeld" {
		t.Errorf("held by nothing: Stalled %s", got)
	}
	w.check(w.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "refit-manager-workloads"}}))
	w.now = w.now.Add(heldInterval)
	w.rounds(1)
	if got := w.condition("web", v1alpha1.ConditionStalled); got != "" {
		t.Errorf("held by the webhook: Stalled %s", got)
	}
}
