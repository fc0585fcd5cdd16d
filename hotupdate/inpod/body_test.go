package inpod_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// unread is a body that must not be read.
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

// JSON that would be changed silently, or that contradicts itself, is refused with the field.
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

// A body of 8 MiB takes the sidecar, whose limit is 64 MiB, a few times as much, however many files or fields are in it.
func TestBodiesTakeBoundedMemory(t *testing.T) { //nolint:paralleltest // allocations of others would count
	s := newStage(t).run(none)
	many := func(begin, one, end string, size int) string {
		return begin + strings.Repeat(one, (size-len(begin)-len(end))/len(one)) + end
	}
	var fields strings.Builder
	for n := 0; fields.Len() < 8<<20-20; n++ {
		fmt.Fprintf(&fields, "%d=&", n)
	}
	for name, tc := range map[string]struct {
		kind, body, want string
		code             int
	}{
		"many files":       {"application/json", many(`{"version":"r","files":[`, "{},", `{}]}`, 8<<20), "JSON has a list or an object of more than 10000 elements", http.StatusBadRequest},
		"one file":         {"application/json", many(`{"version":"r","name":"a","data":"`, "QUFB", `"}`, 8<<20), "", http.StatusOK},
		"one byte more":    {"application/json", many(`{"version":"r","name":"a","data":"`, "QUFB", `"}`, 8<<20) + "    ", "JSON: more than 8388608 bytes", http.StatusRequestEntityTooLarge},
		"fields of a form": {"application/x-www-form-urlencoded", fields.String(), "form: more than 1048576 bytes", http.StatusRequestEntityTooLarge},
	} {
		r := httptest.NewRequest(http.MethodPost, "/hot-update", strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.kind)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, said := s.do(r)
		runtime.ReadMemStats(&after)
		if code != tc.code || !strings.Contains(said, tc.want) {
			t.Errorf("%s: %d %.300s, want %d with %q", name, code, said, tc.code, tc.want)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 56 {
			t.Errorf("%s: %d MiB were allocated", name, took)
		} else {
			t.Logf("%s: %d MiB were allocated", name, took)
		}
	}
}
