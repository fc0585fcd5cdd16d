package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

// send returns the HTTP status and the answer to a review.
func send(t *testing.T, handler http.Handler, review string) (int, *admissionv1.AdmissionResponse) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(review))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	answer := admissionv1.AdmissionReview{}
	if recorder.Code == http.StatusOK {
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%v: %s", err, recorder.Body)
		}
	}
	return recorder.Code, answer.Response
}

func review(object, groups string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"42","operation":"CREATE","userInfo":{"groups":[` + groups + `]},"object":` + object + `}}`
}

// Anyone in the cluster can send a review, since the API server does not authenticate itself: one that takes a lot of memory when it is
// decoded is refused before that.
func TestReviewsThatTakeMuchMemoryAreNotDecoded(t *testing.T) {
	t.Parallel()
	called := false
	handler := guardcontrol.CheckReviews(&admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		called = true
		return admission.Allowed("")
	})})
	for name, text := range map[string]string{
		"2,000,000 empty containers": review(`{"spec":{"containers":[`+strings.Repeat("{},", 2_000_000)+`{}]}}`, ""),
		"2,000,000 empty groups":     review(`{}`, strings.Repeat(`"",`, 2_000_000)+`""`),
		"200,000 values":             review(`[`+strings.Repeat(`[{},{},{},{},{},{},{},{},{},{}],`, 20_000)+`{}]`, ""),
		"9 MiB":                      review(`"`+strings.Repeat("x", 9<<20)+`"`, ""),
		"deep":                       review(strings.Repeat("[", 1000)+strings.Repeat("]", 1000), ""),
	} {
		if code, _ := send(t, handler, text); called || code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: called: %t, HTTP status %d", name, called, code)
		}
	}
	if code, answer := send(t, handler, review(`{"spec":{"containers":[{}]}}`, `"a"`)); !called || code != http.StatusOK || !answer.Allowed {
		t.Errorf("an ordinary one: called: %t, HTTP status %d, %+v", called, code, answer)
	}
}

// Several large reviews at once are not kept in memory together, and do not hold up small ones.
func TestLargeReviewsWaitForEachOther(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	large, most := 0, 0
	begun, free := make(chan struct{}, 10), make(chan struct{})
	handler := guardcontrol.BoundReviews(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) < 1<<20 {
			return
		}
		mu.Lock()
		large++
		most = max(most, large)
		mu.Unlock()
		begun <- struct{}{}
		<-free
		mu.Lock()
		large--
		mu.Unlock()
	}))
	post := func(size int) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(make([]byte, size)))
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() { post(2 << 20) })
	}
	<-begun
	post(1 << 10) // is answered meanwhile
	close(free)
	work.Wait()
	if most != 1 {
		t.Errorf("%d large reviews at once", most)
	}
}
