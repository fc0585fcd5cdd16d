package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

const pausing = "do=pause&kind=restartrollout&namespace=shop&name=web-x"

// Only the browser of the user, which has opened the address with the token, gets an answer.
func TestOthersAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, nil, shop(1)...)
	for name, tc := range map[string]struct {
		method, path string
		change       func(*http.Request)
		want         int
	}{
		"user":                      {http.MethodGet, "/", nil, http.StatusOK},
		"no cookie":                 {http.MethodGet, "/", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
		"no cookie, style":          {http.MethodGet, "/assets/style.css", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
		"no cookie, stream":         {http.MethodGet, "/stream/", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
		"another cookie":            {http.MethodGet, "/", func(r *http.Request) { r.Header.Set("Cookie", s.cookie.Name+"=guessed") }, http.StatusUnauthorized},
		"the token as cookie":       {http.MethodGet, "/", func(r *http.Request) { r.Header.Set("Cookie", s.cookie.Name+"="+s.token()) }, http.StatusUnauthorized},
		"another token":             {http.MethodGet, "/?token=guessed", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
		"rebinding":                 {http.MethodGet, "/", func(r *http.Request) { r.Host = "attacker.example:" + s.port() }, http.StatusMisdirectedRequest},
		"rebinding with the token":  {http.MethodGet, "/?token=" + s.token(), func(r *http.Request) { r.Host = "attacker.example" }, http.StatusMisdirectedRequest},
		"another port":              {http.MethodGet, "/", func(r *http.Request) { r.Host = "127.0.0.1:1" }, http.StatusMisdirectedRequest},
		"localhost":                 {http.MethodGet, "/", func(r *http.Request) { r.Host = "localhost:" + s.port() }, http.StatusOK},
		"form of another site":      {http.MethodPost, "/act", func(r *http.Request) { r.Header.Set("Origin", "https://attacker.example") }, http.StatusForbidden},
		"form of an opaque origin":  {http.MethodPost, "/act", func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"form without an origin":    {http.MethodPost, "/act", func(r *http.Request) { r.Header.Del("Origin") }, http.StatusForbidden},
		"form of another port":      {http.MethodPost, "/act", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, http.StatusForbidden},
		"script of another port":    {http.MethodGet, "/", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"own script":                {http.MethodGet, "/", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, http.StatusOK},
		"outside of the path":       {http.MethodGet, "/", func(r *http.Request) { r.URL.Path = "/nodes" }, http.StatusNotFound},
		"action by a link":          {http.MethodGet, "/act?" + pausing, nil, http.StatusOK},
		"another method":            {http.MethodPut, "/act", nil, http.StatusMethodNotAllowed},
		"template":                  {http.MethodGet, "/assets/page.html.tmpl", nil, http.StatusNotFound},
		"page of another namespace": {http.MethodGet, "/pod?namespace=kube-system&name=x", nil, http.StatusBadRequest},
		"no page":                   {http.MethodGet, "/etc/passwd", nil, http.StatusNotFound},
		"no object":                 {http.MethodGet, "/rollout?kind=restartrollout&name=other", nil, http.StatusNotFound},
	} {
		if got := s.send(t, tc.method, tc.path, "", tc.change); got.code != tc.want {
			t.Errorf("%s: %d, want %d: %s", name, got.code, tc.want, got.body)
		}
	}
	if paused(t, s) {
		t.Error("the rollout has been paused")
	}
}

func (s *site) token() string { return s.address[strings.Index(s.address, "token=")+len("token="):] }

func (s *site) port() string { return s.server.URL[strings.LastIndex(s.server.URL, ":")+1:] }

func TestCookie(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	const secret = 26 // characters of rand.Text
	if len(s.cookie.Path) != secret+2 {
		t.Errorf("a program at another port of the host gets the cookie: its path is %q", s.cookie.Path)
	}
	if s.cookie.SameSite != http.SameSiteStrictMode || !s.cookie.HttpOnly || strings.Contains(s.address, s.cookie.Value) {
		t.Errorf("%+v", s.cookie)
	}
}

// Every answer has a policy that allows no script except the dashboard's own.
func TestPolicy(t *testing.T) {
	t.Parallel()
	s := open(t, nil, shop(1)...)
	for _, path := range []string{"/", "/nodes", "/assets/app.js", "/rollout?kind=restartrollout&name=other", "/timeline.svg?kind=restartrollout&name=web-x", "/?token=" + s.token()} {
		got := s.get(t, path)
		csp := got.header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'; script-src 'self';") || strings.Contains(csp, "unsafe") || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, got.header)
		}
		if strings.Contains(path, "token") {
			continue
		}
		if strings.Contains(got.body, "onclick") || strings.Contains(got.body, "<style") || strings.Contains(got.body, s.token()) {
			t.Errorf("%s:\n%s", path, got.body)
		}
	}
}

func TestReadOnlyIsEnforcedByTheServer(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *Config) { c.ReadOnly = true }, shop(1)...)
	if got := s.send(t, http.MethodPost, "/act", pausing, nil); got.code != http.StatusForbidden || !strings.Contains(got.body, "--read-only") {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := s.get(t, "/act?"+pausing); got.code != http.StatusNotFound {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := s.get(t, "/rollout?kind=restartrollout&name=web-x"); got.code != http.StatusOK || strings.Contains(got.body, "act?") {
		t.Errorf("%d %s", got.code, got.body)
	}
	if paused(t, s) {
		t.Error("the rollout has been paused")
	}
}

func paused(t *testing.T, s *site) bool {
	t.Helper()
	var r v1alpha1.RestartRollout
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-x"}, &r); err != nil {
		t.Fatal(err)
	}
	return r.Spec.Paused
}

func TestActionsRunTheCommands(t *testing.T) {
	t.Parallel()
	s := open(t, nil, shop(1)...)
	if got := s.get(t, "/rollout?kind=restartrollout&name=web-x"); !strings.Contains(got.body, ">Pause</a>") || strings.Contains(got.body, ">Resume</a>") {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := s.get(t, "/act?"+pausing); !strings.Contains(got.body, "No further pod begins") || !strings.Contains(got.body, `<button type="submit">Pause</button>`) {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := s.send(t, http.MethodPost, "/act", pausing, nil); got.code != http.StatusOK || !strings.Contains(got.body, "restartrollout/web-x paused") {
		t.Errorf("%d %s", got.code, got.body)
	}
	if !paused(t, s) {
		t.Error("the rollout has not been paused")
	}
	if got := s.send(t, http.MethodPost, "/act", strings.Replace(pausing, "pause", "resume", 1), nil); got.code != http.StatusOK || paused(t, s) {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := s.send(t, http.MethodPost, "/act", strings.Replace(pausing, "pause", "abort", 1), nil); got.code != http.StatusOK || !strings.Contains(got.body, "aborted") {
		t.Errorf("%d %s", got.code, got.body)
	}
	for _, wrong := range []string{strings.Replace(pausing, "pause", "delete", 1), strings.Replace(pausing, "pause", "undo", 1), strings.Replace(pausing, "shop", "other", 1), "do=pause&kind=restartrollout"} {
		if got := s.send(t, http.MethodPost, "/act", wrong, nil); got.code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", wrong, got.code, got.body)
		}
	}
	if got := s.send(t, http.MethodPost, "/act", strings.Replace(pausing, "web-x", "other", 1), nil); got.code != http.StatusUnprocessableEntity || !strings.Contains(got.body, "It failed: ") {
		t.Errorf("%d %s", got.code, got.body)
	}
}
