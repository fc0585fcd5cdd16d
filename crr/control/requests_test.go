package control

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// A webhook configuration that is still there must not stop requests that a kruise-manager looks after.
func TestSwitchedOffWebhookAllowsWhatAKruiseManagerHasAdmitted(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: testScheme(t), Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{WebhookMux: mux}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := AddNothing(mgr, Config{}); err != nil {
		t.Fatal(err)
	}
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","object":{"spec":{
		"podName":"no-such-pod","containers":[{"name":"app","statusContext":{"containerID":"containerd://a","restartCount":0}}]}}}}`
	recorder := httptest.NewRecorder()
	question := httptest.NewRequestWithContext(t.Context(), http.MethodPost, admissionPath, strings.NewReader(review))
	question.Header.Set("Content-Type", "application/json")
	mux.ServeHTTP(recorder, question)
	if body := recorder.Body.String(); !strings.Contains(body, `"allowed":true`) || strings.Contains(body, `"patch"`) {
		t.Errorf("answer %s", body)
	}
}
