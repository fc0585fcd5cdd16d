// Package server serves the sidecar's HTTP endpoints with TLS and authentication.
//
// It contains: the configuration of the server and the checks of every request. What the endpoints do must stay out.
package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/internal/httpserver"
	"github.com/refit-project/refit/plugin/config"
)

// Start serves a handler in the group until ctx ends.
func Start(ctx context.Context, group *errgroup.Group, address string, handler http.Handler, secure *tls.Config) error {
	return httpserver.Start(ctx, group, httpserver.Config{
		Address: address, Handler: handler, TLS: secure, ReadTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
	})
}

// Authorized accepts requests with the token in the file, which is read at each request because it may be renewed. If the
// file is empty or missing, every request is refused.
func Authorized(tokenFile string, next http.Handler) http.Handler {
	if tokenFile == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(tokenFile)
		want := strings.TrimSpace(string(b))
		if err != nil || want == "" {
			http.Error(w, "the server has no token yet", http.StatusServiceUnavailable)
			return
		}
		got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		a, b2 := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(got))
		if !ok || subtle.ConstantTimeCompare(a[:], b2[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send the bearer token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// LocalOnly refuses requests that a browser sends for a page of another origin, for example to a port that is forwarded to
// a user's machine. Without authentication the Host has to be an address or localhost, because a page can let its own name
// resolve to 127.0.0.1.
func LocalOnly(authenticated bool, next http.Handler) http.Handler {
	named := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !authenticated && host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			http.Error(w, "call this server by its address or as localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(named)
}

// TLSConfig returns nil without certificates. The files are read at each connection because they may be renewed.
func TLSConfig(c config.TLS) (*tls.Config, error) {
	if c.CertFile == "" {
		return nil, nil //nolint:nilnil // plain HTTP is a configuration
	}
	load := func() (*tls.Config, error) {
		certificate, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load certificate: %w", err)
		}
		loaded := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		if c.ClientCAFile == "" {
			return loaded, nil
		}
		pem, err := os.ReadFile(c.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("load client CA: %w", err)
		}
		loaded.ClientCAs = x509.NewCertPool()
		if !loaded.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("load client CA %s: no certificates", c.ClientCAFile)
		}
		loaded.ClientAuth = tls.RequireAndVerifyClientCert
		return loaded, nil
	}
	first, err := load()
	if err != nil {
		return nil, err
	}
	first.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return load() }
	return first, nil
}
