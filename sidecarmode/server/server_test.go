package server_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refit-project/refit/plugin/config"
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

func TestCertificatesThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	if made, err := server.TLSConfig(config.TLS{}); made != nil || err != nil {
		t.Errorf("none is configured: %v, %v", made, err)
	}
	dir := t.TempDir()
	if made, err := server.TLSConfig(config.TLS{CertFile: dir + "/none", KeyFile: dir + "/none"}); err == nil || !strings.Contains(err.Error(), "load certificate: ") {
		t.Errorf("it is not there: %v, %v", made, err)
	}
}

// The file is read at each request, for the token may be renewed.
func TestOnlyWhoSendsTheBearerTokenPasses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	for name, tt := range map[string]struct {
		token, header string
		want          int
	}{
		"the token":               {"secret\n", "Bearer secret", 200},
		"renewed":                 {"other", "Bearer other", 200},
		"without its kind":        {"secret", "secret", 401},
		"of another kind":         {"secret", "Basic secret", 401},
		"another":                 {"secret", "Bearer secre", 401},
		"none":                    {"secret", "", 401},
		"none, and none is there": {"\n", "", 503},
		"empty, as in the file":   {"", "Bearer ", 503},
	} {
		if err := os.WriteFile(file, []byte(tt.token), 0o600); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/hot-update", http.NoBody)
		r.Header.Set("Authorization", tt.header)
		w := httptest.NewRecorder()
		server.Authorized(file, ok).ServeHTTP(w, r)
		if w.Code != tt.want || (w.Header().Get("WWW-Authenticate") != "") != (tt.want == 401) {
			t.Errorf("%s: %d, want %d", name, w.Code, tt.want)
		}
	}
	w := httptest.NewRecorder()
	if server.Authorized(file+"-missing", ok).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody)); w.Code != 503 {
		t.Errorf("without the file: %d", w.Code)
	}
	w = httptest.NewRecorder()
	if server.Authorized("", ok).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody)); w.Code != 200 {
		t.Errorf("where none is configured: %d", w.Code)
	}
}
