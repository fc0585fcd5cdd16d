package control

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/reviewed"
)

func created(raw string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)}}}
}

// gatesOf are the readiness gates of a pod as it would be stored.
func gatesOf(t *testing.T, raw string, response admission.Response) (gates []string) {
	t.Helper()
	var pod corev1.Pod
	reviewed.Decode(t, []byte(raw), response, &pod)
	for _, gate := range pod.Spec.ReadinessGates {
		gates = append(gates, string(gate.ConditionType))
	}
	return gates
}

func TestTheReadinessGateIsAddedOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"none":              {`{"containers":[]}`, []string{"KruisePodReady"}},
		"null":              {`{"readinessGates":null}`, []string{"KruisePodReady"}},
		"empty":             {`{"readinessGates":[]}`, []string{"KruisePodReady"}},
		"another":           {`{"readinessGates":[{"conditionType":"InPlaceUpdateReady"}]}`, []string{"InPlaceUpdateReady", "KruisePodReady"}},
		"already present":   {`{"readinessGates":[{"conditionType":"KruisePodReady"}]}`, []string{"KruisePodReady"}},
		"among other gates": {`{"readinessGates":[{"conditionType":"KruisePodReady"},{"conditionType":"a.b/c"}]}`, []string{"KruisePodReady", "a.b/c"}},
	} {
		raw := `{"metadata":{"name":"web"},"spec":` + tc.spec + `}`
		response := addReadinessGate(t.Context(), created(raw))
		if diff := cmp.Diff(tc.want, gatesOf(t, raw, response)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if same := len(response.Patches) == 0; same != strings.Contains(tc.spec, "KruisePodReady") {
			t.Errorf("%s: patches %v", name, response.Patches)
		}
	}
}

func TestOnlyPodsThatAreCreatedGetTheReadinessGate(t *testing.T) {
	t.Parallel()
	update, sub := created(`{"spec":{}}`), created(`{"spec":{}}`)
	update.Operation, sub.SubResource = admissionv1.Update, "status"
	for _, request := range []admission.Request{update, sub} {
		if response := addReadinessGate(t.Context(), request); !response.Allowed || len(response.Patches) != 0 {
			t.Errorf("got %+v", response)
		}
	}
	if response := addReadinessGate(t.Context(), created(`{"spec":`+strings.Repeat("[", 1000)+`}`)); response.Allowed {
		t.Errorf("a pod that cannot be read: %+v", response)
	}
}

// FuzzReadinessGates makes pods of their parts: each review is answered, within bounds, and the answer adds the gate.
func FuzzReadinessGates(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed)
	}
	f.Add([]byte(`{"spec":{"readinessGates":[{"conditionType":"KruisePodReady"},null]}}`))
	var parts struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     corev1.PodSpec    `json:"spec"`
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		for _, raw := range [][]byte{hostile.Object("v1", "Pod", parts, seed), seed} {
			reviewed.Hostile(t, admission.HandlerFunc(addReadinessGate), "CREATE", "Pod", raw, []byte("null"))
		}
	})
}
