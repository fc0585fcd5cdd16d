package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate"
)

// slow carries out requests of version v1 when it is told to, and others at once.
type slow struct {
	asked
	begun, end chan struct{}
}

func (s *slow) Apply(_ context.Context, request hotupdate.Request) (hotupdate.Result, error) {
	if request.Version == "v1" {
		s.begun <- struct{}{}
		<-s.end
	}
	return hotupdate.Result{Changed: true, Revision: hotupdate.Revision{ID: "1", Version: request.Version}}, nil
}

// ofSize is a request in JSON of so many bytes.
func ofSize(version string, size int) *http.Request {
	before, after := `{"version":"`+version+`","name":"a","url":"http://h/a"`, `}`
	return inJSON("/hot-update", before+strings.Repeat(" ", size-len(before)-len(after))+after)
}

// One large request is read at a time: what others would take of the memory is refused with 409. Small ones go on.
func TestLargeRequestsAreReadOneAtATime(t *testing.T) {
	t.Parallel()
	s := &slow{begun: make(chan struct{}), end: make(chan struct{})}
	mux := http.NewServeMux()
	for pattern, handler := range Routes(s) {
		mux.Handle(pattern, handler)
	}
	send := func(r *http.Request) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	first := make(chan int)
	large := func() *http.Request { return ofSize("v1", 64<<10+1) }
	go func() { first <- send(large()).Code }()
	<-s.begun
	unknown := ofSize("v2", 100)
	unknown.ContentLength = -1
	for name, r := range map[string]*http.Request{"large": large(), "of unknown length": unknown} {
		if w := send(r); w.Code != http.StatusConflict {
			t.Errorf("%s beside a large one: %d %s", name, w.Code, w.Body)
		}
	}
	for name, size := range map[string]int{"small": 100, "at the limit": 64 << 10} {
		if w := send(ofSize("v2", size)); w.Code != http.StatusOK {
			t.Errorf("%s beside a large one: %d %s", name, w.Code, w.Body)
		}
	}
	s.end <- struct{}{}
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
	go func() { first <- send(large()).Code }()
	<-s.begun
	s.end <- struct{}{}
	if code := <-first; code != http.StatusOK {
		t.Errorf("after the first: %d", code)
	}
}

// Content comes with a request in JSON, which may therefore be larger than a form.
func TestContentOfARequest(t *testing.T) {
	t.Parallel()
	for size, code := range map[int]int{2 << 20: 200, 7 << 20: 413} { // in base64
		a := &asked{}
		data := base64.StdEncoding.EncodeToString(make([]byte, size))
		w := call(a, inJSON("/hot-update", `{"version":"v1","name":"a","data":"`+data+`"}`))
		if w.Code != code || a.called != (code == 200) {
			t.Errorf("%d bytes: %d %.200s, carried out: %t", size, w.Code, w.Body, a.called)
		}
	}
}
