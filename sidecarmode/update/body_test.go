package update_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// The content of one request may take much of the memory: while it is read, others are answered before theirs is.
func TestOneBodyIsReadAtATime(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	reader, writer := io.Pipe()
	request := func(body io.Reader) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/hot-update", body)
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	ended := make(chan int, 1)
	go func() {
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, request(reader))
		ended <- w.Code
	}()
	if _, err := io.WriteString(writer, `{"version":"v1","name":"a",`); err != nil { // it is being read now
		t.Fatal(err)
	}
	if code, said := s.do(request(unread{t})); code != http.StatusConflict || !strings.Contains(said, "another update") {
		t.Errorf("%d %s", code, said)
	}
	s.accept("v0", "/small", "S") // a request without content of its own does not wait for one that is slow
	if _, err := io.WriteString(writer, `"data":"QQ=="}`); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	if code := <-ended; code != http.StatusOK {
		t.Errorf("the one that was read: %d", code)
	}
	s.check("a", "A")
	s.accept("v2", "/b", "B")
}

// What JSON would replace in silence, and what contradicts itself, is refused with the field.
func TestJSONThatSaysTwoThingsIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.origin.put("/a", "A")
	for body, want := range map[string]string{
		`{"version":"r","url":"ORIGIN/a","data":"QQ=="}`:              "exactly one of url and data",
		`{"version":"r","files":[{"url":"ORIGIN/a","data":"QQ=="}]}`:  "exactly one of url and data",
		`{"version":"r","name":"\ud800","data":"QQ=="}`:               "name: not UTF-8",
		"{\"version\":\"r\",\"name\":\"\xff\xfe\",\"data\":\"QQ==\"}": "name: not UTF-8",
		`{"version":"\ud800","name":"a","data":"QQ=="}`:               "valid version",
	} {
		if code, answer := s.postJSON("/hot-update", body); code != http.StatusBadRequest || !strings.Contains(answer["error"].(string), want) {
			t.Errorf("%q: %d %v, want 400 with %q", body, code, answer, want)
		}
	}
	if code, said := s.post("v1", s.origin.URL+"/a", "name", "caf\xe9"); code != http.StatusBadRequest || !strings.Contains(said, "UTF-8") {
		t.Errorf("form: %d %s", code, said)
	}
}
