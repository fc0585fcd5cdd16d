package reviewed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// Hostile sends the review of an object, which may be any text, to a webhook as it is served, and fails the test if the webhook panics, does
// not answer, or answers without a bound.
func Hostile(t *testing.T, handler admission.Handler, operation, kind string, object, old []byte) {
	t.Helper()
	body := fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":%q,"kind":{"kind":%q},`+
		`"namespace":"shop","userInfo":{"username":"alice"},"object":%s,"oldObject":%s}}`, operation, kind, object, old)
	served := guardcontrol.CheckReviews(&admission.Webhook{Handler: handler, RecoverPanic: new(false)})
	request, recorder := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body)), httptest.NewRecorder()
	request.Header.Set("Content-Type", "application/json")
	watchdog.Watch(t, func() { served.ServeHTTP(recorder, request) })
	answer := recorder.Body.Bytes()
	if recorder.Code == http.StatusOK && !json.Valid(answer) || len(answer) > 10*len(body)+10_000 {
		t.Errorf("status %d with %d bytes for %d: %.300s", recorder.Code, len(answer), len(body), answer)
	}
}
