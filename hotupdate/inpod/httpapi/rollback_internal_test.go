package httpapi

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func asText(text string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/rollback", strings.NewReader(text))
	r.Header.Set("Content-Type", "text/plain")
	return r
}

// A revision is gone back to by its ID, by its version, which may have several, or as the one before.
func TestRevisionThatIsGoneBackTo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		r    *http.Request
		want string
		code int
	}{
		"the one before":           {form("/rollback", nil), "", 200},
		"an ID":                    {form("/rollback", url.Values{"id": {"1"}}), "1", 200},
		"a version":                {form("/rollback", url.Values{"version": {"v1"}}), "2", 200},
		"an ID, not the version":   {form("/rollback", url.Values{"id": {"1"}, "version": {"v2"}}), "1", 200},
		"an ID in JSON":            {inJSON("/rollback", `{"id":"1"}`), "1", 200},
		"a version in JSON":        {inJSON("/rollback", `{"version":"v2"}`), "3", 200},
		"an ID in the URL":         {httptest.NewRequest(http.MethodPost, "/rollback?id=1", http.NoBody), "1", 200},
		"empty JSON":               {inJSON("/rollback", ""), "", 200},
		"no JSON":                  {inJSON("/rollback", "{"), "none", 400},
		"a version that is gone":   {form("/rollback", url.Values{"version": {"v9"}}), "none", 404},
		"not by another method":    {httptest.NewRequest(http.MethodGet, "/rollback", http.NoBody), "none", 405},
		"a form of another name":   {form("/rollback", url.Values{"revision": {"1"}}), "none", 400},
		"JSON as a form":           {form("/rollback", url.Values{`{"id":"1"}`: {""}}), "none", 400},
		"JSON as plain text":       {asText(`{"id":"1"}`), "none", 400},
		"JSON of another name":     {inJSON("/rollback", `{"revision":"1"}`), "none", 400},
		"JSON, and more":           {inJSON("/rollback", `{"id":"1"} {}`), "none", 400},
		"a form that is broken":    {httptest.NewRequest(http.MethodPost, "/rollback?id=%zz", http.NoBody), "none", 400},
		"a form that is too large": {form("/rollback", url.Values{"id": {strings.Repeat("x", 1<<20)}}), "none", 413},
		"more than a form can be":  {inJSON("/rollback", `{"id":"`+strings.Repeat("x", 1<<20)+`"}`), "none", 413},
	} {
		a := &asked{}
		w := call(a, tt.r)
		if w.Code != tt.code || a.called != (tt.want != "none") || a.called && a.rollback != tt.want {
			t.Errorf("%s: %d %s, back to %q (%t)", name, w.Code, w.Body, a.rollback, a.called)
		}
	}
	failing := &asked{err: ErrRestoring}
	for _, r := range []*http.Request{form("/rollback", url.Values{"version": {"v1"}}), httptest.NewRequest(http.MethodGet, "/revisions", http.NoBody)} {
		if w := call(failing, r); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s while it restores: %d %s", r.URL.Path, w.Code, w.Body)
		}
	}
}
