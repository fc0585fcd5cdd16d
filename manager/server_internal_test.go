package manager

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Every webhook is registered at this server.
func TestWebhooksAreServedToPodsOnlyIfThatIsConfigured(t *testing.T) { //nolint:paralleltest // the registry of metrics is a variable of controller-runtime
	for _, refuse := range []bool{true, false} { //nolint:paralleltest // as above
		t.Run(strconv.FormatBool(refuse), func(t *testing.T) {
			registry := metrics.Registry
			t.Cleanup(func() { metrics.Registry = registry })
			metrics.Registry = prometheus.NewRegistry()
			server, calling, err := newServer(Config{RefusePods: refuse, Logger: slog.New(slog.DiscardHandler)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			pods := controllertest.NewFakeInformer(controllertest.Synced)
			if err := calling.Watch(t.Context(), podsOnly{pods: pods}, nil); err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{}
			pod.Status.PodIP = "10.0.0.5"
			pods.Add(pod)
			server.Register("/mutate", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
			review := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mutate", nil)
			review.RemoteAddr = "10.0.0.5:40000"
			answer := httptest.NewRecorder()
			server.WebhookMux().ServeHTTP(answer, review)
			if want := map[bool]int{true: http.StatusForbidden, false: http.StatusOK}[refuse]; answer.Code != want {
				t.Errorf("status %d, want %d", answer.Code, want)
			}
		})
	}
}

// podsOnly is a cache that has only pods.
type podsOnly struct {
	crcache.Informers
	pods crcache.Informer
}

func (p podsOnly) GetInformer(context.Context, client.Object, ...crcache.InformerGetOption) (crcache.Informer, error) {
	return p.pods, nil
}

// The API server presents a certificate if its configuration of admission says so.
func TestCallersNeedACertificateOfTheConfiguredAuthority(t *testing.T) { //nolint:paralleltest // the registry of metrics is a variable of controller-runtime
	registry := metrics.Registry
	t.Cleanup(func() { metrics.Registry = registry })
	metrics.Registry = prometheus.NewRegistry()
	file := filepath.Join(t.TempDir(), "ca.crt")
	own, other := selfSigned(t), selfSigned(t)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}), 0o600); err != nil {
		t.Fatal(err)
	}
	webhooks, _, err := newServer(Config{WebhookClientCAFile: file, Logger: slog.New(slog.DiscardHandler)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	webhooks.Register("/mutate", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	authority, err := clientAuthority(file)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(webhooks.WebhookMux())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{}
	verifyClients(server.TLS, authority)
	server.StartTLS()
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		certificates []tls.Certificate
		want         int // 0: no answer
	}{
		"of the authority": {[]tls.Certificate{own}, http.StatusOK},
		"of another one":   {[]tls.Certificate{other}, 0},
		"none":             {nil, http.StatusForbidden},
	} {
		caller := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &append(tc.certificates, tls.Certificate{})[0], nil
			},
		}}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mutate", nil)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		if response, err := caller.Do(request); err == nil {
			got = response.StatusCode
			_ = response.Body.Close()
		}
		if got != tc.want {
			t.Errorf("certificate %s: status %d, want %d", name, got, tc.want)
		}
	}
}

func TestAnAuthorityThatCannotBeReadEndsTheManager(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".none"} {
		if _, _, err := newServer(Config{WebhookClientCAFile: file}, nil); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: error %v", file, err)
		}
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
