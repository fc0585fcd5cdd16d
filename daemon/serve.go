package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// certificateLife is longer than a process should live. The certificate is self-signed and made at each start.
const certificateLife = 10 * 365 * 24 * time.Hour

// authorizer reports whether a bearer token may GET a path; *kube.Client has it.
type authorizer interface {
	MayGet(ctx context.Context, token, path string) (bool, error)
}

// endpoints are what the daemon serves over HTTP.
type endpoints struct {
	config    Config
	readiness *readiness
	metrics   prometheus.Gatherer
	tokens    authorizer
}

// serve listens and serves in the group until ctx ends.
func (e endpoints) serve(ctx context.Context, group *errgroup.Group) error {
	config := e.config
	if err := listen(ctx, group, config.Addr, e.readiness.handler(), nil); err != nil {
		return err
	}
	if config.PprofAddr != "" {
		mux := http.NewServeMux()
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		if err := listen(ctx, group, config.PprofAddr, mux, nil); err != nil {
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
		return listen(ctx, group, config.MetricsAddr, mux, nil)
	}
	mux.Handle("GET /metrics", authorized(e.tokens, handler))
	certificate, err := selfSigned(config.Node)
	if err != nil {
		return err
	}
	return listen(ctx, group, config.MetricsAddr, mux, &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	})
}

// listen serves in the group until ctx ends.
func listen(ctx context.Context, group *errgroup.Group, address string, handler http.Handler, secure *tls.Config) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve on %s: %w", address, err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := server.Shutdown(last); err != nil {
			return server.Close()
		}
		return nil
	})
	return nil
}

// authorized passes requests on whose bearer token may GET the path, as the API server's authorization decides.
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
