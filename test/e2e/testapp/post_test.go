package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPostPrintsTheAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		http.Error(w, r.Method+" "+string(body), http.StatusForbidden)
	}))
	defer server.Close()
	var out strings.Builder
	if code, err := post(server.URL, "{}", &out); code != 0 || err != nil || out.String() != "403\nPOST {}\n" {
		t.Errorf("code %d, error %v, printed %q", code, err, out.String())
	}
	server.Close()
	if _, err := post(server.URL, "{}", &out); err == nil {
		t.Error("no error without an answer")
	}
}
