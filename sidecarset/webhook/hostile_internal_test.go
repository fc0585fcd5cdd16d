package webhook

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

const everyPod = "metadata: {name: all}\nspec: {selector: {matchExpressions: [{key: gone, operator: DoesNotExist}]}, containers: [{name: agent, image: agent:1}]}"

func post(t testing.TB, h http.Handler, body []byte) (code int, answer []byte) {
	t.Helper()
	recorder := httptest.NewRecorder()
	watchdog.Watch(t, func() {
		h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, podPath, bytes.NewReader(body)))
	})
	return recorder.Code, recorder.Body.Bytes()
}

// Whoever reaches the webhook can send it a review: the API server has looked at none of it.
func TestReviewsAreBounded(t *testing.T) {
	t.Parallel()
	const begin, end = `{"request":{"uid":"u","operation":"CREATE","resource":{"resource":"pods"},"namespace":"shop","object":`, `}}`
	for name, tc := range map[string]struct {
		body, why string
		code      int
	}{
		"a pod":        {begin + `{"metadata":{"name":"web"},"spec":{"containers":[{"name":"app"}]}}` + end, `"allowed":true`, 200},
		"deep":         {begin + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + end, "64 levels", 500},
		"a long list":  {begin + `{"spec":{"containers":[` + strings.Repeat("{},", 1_000_000) + `{}]}}` + end, "10000 elements", 500},
		"a quantity":   {begin + `{"spec":{"containers":[{"name":"app","resources":{"limits":{"cpu":"1e-300000000"}}}]}}` + end, "exponent", 200},
		"the last key": {begin + `{"spec":{"overhead":{"cpu":"1e300000000"},"overhead":{}}}` + end, "exponent", 200},
		"a large pod":  {begin + `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 3<<20) + `"}}}` + end, `"allowed":true`, 200},
		"too large":    {begin + `"` + strings.Repeat("x", maxReview) + `"` + end, "unexpected end", 500},
		"no type":      {begin + `{"metadata":{"labels":[` + strings.Repeat("1", 1<<20) + `]}}` + end, "cannot unmarshal", 500},
		"the same key": {begin + `1,` + strings.Repeat(`"object":{},`, 9_000) + `"object":{}` + end, `"allowed":true`, 200},
		"null":         {`{"request":null}`, "no request", 500},
		"an empty pod": {begin + `null` + end, "unexpected end", 500},
	} {
		code, answer := post(t, handler(everyPod), []byte(tc.body))
		if code != tc.code || !bytes.Contains(answer, []byte(tc.why)) || code != http.StatusOK && len(answer) > maxError+10 {
			t.Errorf("%s: %d %.300s", name, code, answer)
		}
	}
}

// FuzzReviews makes reviews of their parts: each is answered, within bounds.
func FuzzReviews(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed, []byte{1})
		f.Add([]byte{1}, seed)
	}
	h := handler(everyPod)
	f.Fuzz(func(t *testing.T, outer, inner []byte) {
		review := hostile.JSON(&admissionv1.AdmissionReview{}, outer)
		pod := hostile.JSON(&corev1.Pod{}, inner)
		post(t, h, review)
		body := []byte(`{"request":{"uid":"u","operation":"CREATE","resource":{"resource":"pods"},"namespace":"shop","object":` + string(pod) + `}}`)
		code, answer := post(t, h, body)
		if code != http.StatusOK && len(answer) > maxError+10 || len(answer) > 10*len(body)+10_000 {
			t.Errorf("%d with %d bytes for %d", code, len(answer), len(body))
		}
		if code == http.StatusOK && !json.Valid(answer) {
			t.Errorf("%.300s", answer)
		}
	})
}

func sidecarSetReviews(t testing.TB) *sidecarSetHandler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &sidecarSetHandler{decoder: admission.NewDecoder(scheme), log: slog.New(slog.DiscardHandler), live: fake.NewClientBuilder().WithScheme(scheme).Build(), access: access{nobody}}
}

func sidecarSetReview(sent, old string) admission.Request {
	operation := admissionv1.Create
	if old != "" {
		operation = admissionv1.Update
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Object: runtime.RawExtension{Raw: []byte(sent)}, OldObject: runtime.RawExtension{Raw: []byte(old)},
	}}
}

const setOf = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet","metadata":{"name":"log"},"spec":{"selector":{"matchLabels":{"app":"web"}},
	"containers":[{"name":"agent","image":"agent:1","resources":{"limits":{"cpu":"QUANTITY"}}}]}}`

// The API server decodes no quantity of a custom resource.
func TestASidecarSetWithAQuantityOutOfBoundsIsRefused(t *testing.T) {
	t.Parallel()
	h := sidecarSetReviews(t)
	good, bad := strings.Replace(setOf, "QUANTITY", "100m", 1), strings.Replace(setOf, "QUANTITY", "1e-300000000", 1)
	for name, tc := range map[string]struct {
		sent, old string
		allowed   bool
	}{"as it should be": {good, "", true}, "created": {bad, "", false}, "changed": {bad, good, false}, "mended": {good, bad, true}} {
		watchdog.Watch(t, func() {
			response := h.Handle(t.Context(), sidecarSetReview(tc.sent, tc.old))
			if response.Allowed != tc.allowed || !tc.allowed && !strings.Contains(response.Result.Message, "spec: containers: resources: limits: cpu: not readable") {
				t.Errorf("%s: %v", name, response.Result)
			}
		})
	}
}

// FuzzSidecarSetReviews makes SidecarSets of their parts.
func FuzzSidecarSetReviews(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed, []byte{1})
		f.Add([]byte{1}, seed)
	}
	h := sidecarSetReviews(f)
	f.Fuzz(func(t *testing.T, sent, old []byte) {
		made := func(seed []byte) string {
			return string(hostile.Object("apps.kruise.io/v1beta1", "SidecarSet", &v1beta1.SidecarSet{}, seed))
		}
		watchdog.Watch(t, func() {
			if response := h.Handle(t.Context(), sidecarSetReview(made(sent), made(old))); !response.Allowed && response.Result.Message == "" && response.Result.Reason != metav1.StatusReasonInvalid {
				t.Errorf("refused without a reason: %+v", response.Result)
			}
		})
	})
}
