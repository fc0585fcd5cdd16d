package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refit-project/refit/sidecarmode/server"
)

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })

// A page in a browser of somebody who forwards the port cannot update files.
func TestRequestsOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header        map[string]string
		host          string
		authenticated bool
		want          int
	}{
		"curl":                                  {want: 200, host: "127.0.0.1:5000"},
		"curl by name":                          {want: 200, host: "localhost:5000"},
		"IPv6":                                  {want: 200, host: "[::1]:5000"},
		"no port":                               {want: 200, host: "127.0.0.1"},
		"form of another page":                  {want: 403, host: "127.0.0.1:5000", header: map[string]string{"Origin": "https://evil.example"}},
		"browser says cross-site":               {want: 403, host: "localhost:5000", header: map[string]string{"Sec-Fetch-Site": "cross-site"}},
		"sandboxed page":                        {want: 403, host: "localhost:5000", header: map[string]string{"Origin": "null"}},
		"name that resolves to us":              {want: 403, host: "evil.example:5000", header: map[string]string{"Origin": "http://evil.example:5000"}},
		"service name":                          {want: 403, host: "web.games.svc:5000"},
		"service name, with a token":            {want: 200, host: "web.games.svc:5000", authenticated: true},
		"form of another page, with a token":    {want: 403, host: "web.games.svc:5000", authenticated: true, header: map[string]string{"Origin": "https://evil.example"}},
		"same origin":                           {want: 200, host: "localhost:5000", header: map[string]string{"Origin": "http://localhost:5000", "Sec-Fetch-Site": "same-origin"}},
		"address in brackets with a name in it": {want: 403, host: "[evil.example]:5000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/hot-update", strings.NewReader("version=v1"))
			r.Host = tt.host
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			server.LocalOnly(tt.authenticated, ok).ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("%d, want %d", w.Code, tt.want)
			}
		})
	}
}
