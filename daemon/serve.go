package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/internal/httpserver"
)

// certificateLife is longer than a process should run. The certificate is self-signed and created at each start.
const certificateLife = 10 * 365 * 24 * time.Hour

// authorizer reports whether a bearer token may GET a path; *kube.Client has it.
type authorizer interface {
	MayGet(ctx context.Context, token, path string) (bool, error)
}

// endpoints are the HTTP endpoints of the daemon.
type endpoints struct {
	config    Config
	readiness *readiness
	metrics   prometheus.Gatherer
	tokens    authorizer
}

// serve listens and serves in the group until ctx ends.
func (e endpoints) serve(ctx context.Context, group *errgroup.Group) error {
	config := e.config
	if err := start(ctx, group, config.Addr, e.readiness.handler(), nil); err != nil {
		return err
	}
	if config.PprofAddr != "" {
		mux := http.NewServeMux()
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		if err := start(ctx, group, config.PprofAddr, mux, nil); err != nil {
			return err
		}
	}
	if config.MetricsAddr == "" {
		return nil
	}
	handler := promhttp.HandlerFor(e.metrics, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	if Loopback(config.MetricsAddr) {
		mux.Handle("GET /metrics", handler)
		return start(ctx, group, config.MetricsAddr, mux, nil)
	}
	mux.Handle("GET /metrics", authorized(e.tokens, handler))
	certificate, err := selfSigned(config.Node)
	if err != nil {
		return err
	}
	return start(ctx, group, config.MetricsAddr, mux, &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	})
}

// start serves in the group until ctx ends.
func start(ctx context.Context, group *errgroup.Group, address string, handler http.Handler, secure *tls.Config) error {
	return httpserver.Start(ctx, group, httpserver.Config{
		Address: address, Handler: handler, TLS: secure, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
	})
}

// authorized passes requests on if the API server authorizes their bearer token to GET the path.
func authorized(tokens authorizer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
		if !ok || token == "" {
			http.Error(out, "send a bearer token", http.StatusUnauthorized)
			return
		}
		allowed, err := tokens.MayGet(request.Context(), token, request.URL.Path)
		switch {
		case err != nil:
			http.Error(out, "cannot review the token at the API server: "+err.Error(), http.StatusServiceUnavailable)
		case !allowed:
			http.Error(out, "the token's user may not get "+request.URL.Path, http.StatusForbidden)
		default:
			next.ServeHTTP(out, request)
		}
	})
}

func selfSigned(name string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("generate key for metrics: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: component + "@" + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{name},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign certificate for metrics: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
