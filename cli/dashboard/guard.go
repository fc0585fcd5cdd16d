package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
)

// contentPolicy allows what the server itself has, and no script, style or frame of others. Texts of the cluster are never markup.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm bounds the body of a request.
const maxForm = 16 << 10

// guard lets only the user's browser in. A page of another site can neither read answers nor send actions: the Host header has to be
// the address of the server (DNS rebinding), the cookie is not sent with requests of other sites, and Origin has to be the server's own.
// Browsers send a cookie to every port of a host, and programs of other users may listen on some. So the pages and the cookie have a path
// that nobody else knows: the browser sends the cookie to no other path.
type guard struct {
	hosts []string // host:port
	// token is in the URL that is printed; session is in the cookie.
	token, session string
	cookie         string
	// base is the path of the pages, with a slash at its end.
	base     string
	readOnly bool
	next     http.Handler
}

func newGuard(port string, readOnly bool, next http.Handler) *guard {
	// The port in the name keeps several dashboards apart.
	return &guard{
		hosts: []string{"127.0.0.1:" + port, "localhost:" + port}, token: rand.Text(), session: rand.Text(), cookie: "refit-dashboard-" + port,
		base: "/" + rand.Text() + "/", readOnly: readOnly, next: next,
	}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	switch {
	case !g.ownHost(r.Host):
		http.Error(w, "wrong Host header", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		http.Error(w, "want GET, HEAD or POST", http.StatusMethodNotAllowed)
	case r.Method == http.MethodGet && r.URL.Path == "/" && same(r.URL.Query().Get("token"), g.token):
		g.enter(w)
	case !g.known(r):
		http.Error(w, "open the address that kubectl refit dashboard has printed, with its token", http.StatusUnauthorized)
	case fromOthers(r):
		http.Error(w, "the request comes from a page of another server", http.StatusForbidden)
	case r.Method == http.MethodPost && r.Header.Get("Origin") != "http://"+r.Host:
		http.Error(w, "wrong Origin header", http.StatusForbidden)
	case r.Method == http.MethodPost && g.readOnly:
		http.Error(w, "the dashboard was started with --read-only", http.StatusForbidden)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		http.StripPrefix(strings.TrimSuffix(g.base, "/"), g.next).ServeHTTP(w, r)
	}
}

// enter sets the cookie. The browser continues by itself, because it would not send a strict cookie after a redirect from a link of another site.
func (g *guard) enter(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.session, Path: g.base, HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // the address is http, where browsers drop secure cookies
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=` + g.base + `"><title>Refit</title><p><a href="` + g.base + `">Continue</a>`))
}

func (g *guard) ownHost(host string) bool {
	for _, own := range g.hosts {
		if strings.EqualFold(host, own) {
			return true
		}
	}
	return false
}

// fromOthers reports whether the browser says that a page of another origin made the request. Another port of a host is the same site, where
// SameSite has no effect.
func fromOthers(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// known reports whether the request has the cookie.
func (g *guard) known(r *http.Request) bool {
	for _, cookie := range r.CookiesNamed(g.cookie) {
		if same(cookie.Value, g.session) {
			return true
		}
	}
	return false
}

func same(given, want string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1
}
