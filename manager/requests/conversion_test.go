package requests

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

func TestConversionIsServed(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: testScheme(t), Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{WebhookMux: mux}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := addConversion(mgr); err != nil {
		t.Fatal(err)
	}
	const old = `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"ContainerRecreateRequest","metadata":{"name":"r",
		"annotations":{"crr.apps.kruise.io/sync-container-statuses":"[{\"name\":\"app\",\"ready\":true,\"restartCount\":1}]"}},
		"spec":{"podName":"web","containers":[{"name":"app"}]}}`
	newer := convert[v1beta1.ContainerRecreateRequest](t, mux, "v1beta1", old)
	if s := newer.Status.ContainerStatusSnapshot; len(s) != 1 || s[0].Name != "app" || newer.APIVersion != "apps.kruise.io/v1beta1" {
		t.Errorf("converted to %+v", newer)
	}
	back, err := json.Marshal(newer)
	if err != nil {
		t.Fatal(err)
	}
	again := convert[v1alpha1.ContainerRecreateRequest](t, mux, "v1alpha1", string(back))
	if !strings.Contains(again.Annotations[v1beta1.AnnotationSyncContainerStatuses], `"ready":true`) {
		t.Errorf("converted back to %+v", again)
	}
}

func convert[T any](t *testing.T, handler http.Handler, version, object string) *T {
	t.Helper()
	question := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"apps.kruise.io/` +
		version + `","objects":[` + object + `]}}`
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, conversionPath, strings.NewReader(question)))
	var answer apiextensionsv1.ConversionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		t.Fatalf("answer %d %q: %v", recorder.Code, recorder.Body, err)
	}
	if answer.Response == nil || answer.Response.Result.Status != "Success" || len(answer.Response.ConvertedObjects) != 1 {
		t.Fatalf("answer %s", recorder.Body)
	}
	out := new(T)
	if err := json.Unmarshal(answer.Response.ConvertedObjects[0].Raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}
