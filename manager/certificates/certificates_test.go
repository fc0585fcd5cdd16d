package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newLoader(now *time.Time) *Loader {
	return NewLoader(Config{
		Namespace: "refit-system", Secret: "cert", Clock: func() time.Time { return *now }, Logger: slog.New(slog.DiscardHandler),
	})
}

// serve answers TLS connections with the loader's certificate, as the webhook server does.
func serve(t *testing.T, loader *Loader) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: http.NewServeMux(), ReadHeaderTimeout: time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
		TLSConfig: &tls.Config{GetCertificate: loader.GetCertificate, MinVersion: tls.VersionTLS12},
	}
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// call connects as the API server with a bundle does.
func call(t *testing.T, address string, bundle []byte, now time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := &tls.Dialer{Config: &tls.Config{
		RootCAs: roots, ServerName: names[0], Time: func() time.Time { return now }, MinVersion: tls.VersionTLS12,
	}}
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return err
	}
	_, err = io.WriteString(connection, "")
	return err
}

func TestRenewedCertificateIsServedWithoutRestart(t *testing.T) {
	t.Parallel()
	now := start
	c, loader := newCluster(t), newLoader(&now)
	r := &reconciler{Loader: loader, secrets: c}
	reconcile := func() ctrl.Result {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "refit-system", Name: "cert"}})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	address := serve(t, loader)
	reconcile()
	if err := loader.Ready(nil); err == nil || !strings.Contains(err.Error(), "refit-certificates") {
		t.Errorf("ready without a certificate: %v", err)
	}
	c.run(t, now)
	if result := reconcile(); result.RequeueAfter != 335*day {
		t.Errorf("checked again in %v, want 30 days before the end", result.RequeueAfter)
	}
	if err := call(t, address, c.bundles(t)[0], now); err != nil {
		t.Errorf("first certificate: %v", err)
	}
	if got := testutil.ToFloat64(loader.expiry); got != float64(start.Add(365*day).Unix()) {
		t.Errorf("metric %v", got)
	}
	old := c.bundles(t)[0]

	now = start.Add(400 * day) // nobody has renewed it
	if err := loader.Ready(nil); err == nil || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("ready with an expired certificate: %v", err)
	}
	if result := reconcile(); result.RequeueAfter != day {
		t.Errorf("warns again in %v", result.RequeueAfter)
	}
	if err := call(t, address, old, now); err == nil {
		t.Error("an expired certificate was accepted")
	}
	c.run(t, now)
	reconcile()
	if err := loader.Ready(nil); err != nil {
		t.Errorf("after the renewal: %v", err)
	}
	if err := call(t, address, old, now); err != nil {
		t.Errorf("renewed certificate: %v", err)
	}

	authority := c.secret(t, "authority")
	authority.Data = map[string][]byte{}
	if err := c.Update(t.Context(), authority); err != nil {
		t.Fatal(err)
	}
	c.run(t, now)
	if err := call(t, address, c.bundles(t)[0], now); err != nil {
		t.Errorf("new authority, and a replica that has not loaded its certificate yet: %v", err)
	}
	reconcile()
	if err := call(t, address, c.bundles(t)[0], now); err != nil {
		t.Errorf("certificate of the new authority: %v", err)
	}
	if err := call(t, address, old, now); err == nil {
		t.Error("the certificate is still one of the old authority")
	}
}

func TestUnreadableCertificateLeavesTheOldOneInUse(t *testing.T) {
	t.Parallel()
	now := start
	c, loader := newCluster(t), newLoader(&now)
	c.run(t, now)
	r := &reconciler{Loader: loader, secrets: c}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "refit-system", Name: "cert"}}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	secret := c.secret(t, "cert")
	secret.Data[corev1.TLSCertKey] = []byte("garbage")
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("no error")
	}
	if err := loader.Ready(nil); err != nil {
		t.Errorf("the old certificate is gone: %v", err)
	}
}
