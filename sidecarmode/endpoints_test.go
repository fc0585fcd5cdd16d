package sidecarmode_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func ready(s *stage) func() bool {
	return func() bool { code, _ := s.call(http.MethodGet, s.health, "/readyz"); return code == http.StatusOK }
}

func (s *stage) logged() string {
	s.loggedLocked.Lock()
	defer s.loggedLocked.Unlock()
	return s.log.String()
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Metrics and health: results of both plugins are metrics of one endpoint, together with metrics of updates, probes, and
// writes to the API.
func TestMetricsAndHealth(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	players := write(t, filepath.Join(t.TempDir(), "players"), "12\n")
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "one") }))
	defer origin.Close()
	s.mount(base + `
plugins:
- name: http_probe
  config:
    startDelaySeconds: 1
    endpoints: [{name: e, file: {path: ` + players + `}, storageConfig: {type: HTTPMetric, httpMetric: {metricName: players}, inKube: {labelKey: players}}}]
- name: hot_update
  config:
    fileDir: ` + t.TempDir() + `
    loadPatchType: none
    fetch: {allowNetworks: [127.0.0.0/8]}
    storageConfig: {type: HTTPMetric, httpMetric: {metricName: updated}}
`)
	s.start()
	s.until("ready", ready(s))
	if code, said := s.call(http.MethodGet, s.health, "/healthz"); code != http.StatusOK {
		t.Errorf("health: %d %s", code, said)
	}
	if code, said := s.call(http.MethodPost, s.address, "/hot-update?version=v1&url="+origin.URL+"/f"); code != http.StatusOK {
		t.Fatalf("%d %s", code, said)
	}
	for _, want := range []string{
		"\nplayers 12\n", "refit_sidecar_hot_updates_total{result=\"accepted\"} 1", "refit_sidecar_hot_update_last_successful 1",
		"refit_sidecar_hot_update_last_success_timestamp_seconds ", "refit_sidecar_hot_update_duration_seconds_count 1",
		"refit_sidecar_probe_results_total", "refit_sidecar_result_writes_total{outcome=\"patched\",resource=\"pods\"}",
	} {
		s.until("in the metrics: "+want, func() bool {
			_, said := s.call(http.MethodGet, s.health, "/metrics")
			return strings.Contains(said, want)
		})
	}
}

// AuthN/Z on the own API by client certificates; they and the server's are renewed without a restart.
func TestOwnAPIWithClientCertificates(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	issuer, stranger := newAuthority(t), newAuthority(t)
	issuer.issue(t, dir, "server")
	write(t, filepath.Join(dir, "ca.pem"), issuer.text)
	s.mount(strings.NewReplacer("CERTS", dir).Replace("server: {address: ADDRESS, tls: {certFile: CERTS/server.pem, keyFile: CERTS/server.key, clientCAFile: CERTS/ca.pem}}\n" +
		"health: HEALTH\nplugins: [{name: hot_update, config: {fileDir: " + t.TempDir() + ", loadPatchType: none}}]\n"))
	s.start()
	s.until("ready", ready(s))
	serial := func(by *authority) (*big.Int, error) {
		config := &tls.Config{RootCAs: issuer.pool(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
		if by != nil {
			config.Certificates = []tls.Certificate{by.issue(t, t.TempDir(), "client")}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.address+"/revisions", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("status %d", answer.StatusCode)
		}
		return answer.TLS.PeerCertificates[0].SerialNumber, nil
	}
	before, err := serial(issuer)
	if err != nil {
		t.Fatal(err)
	}
	for who, by := range map[string]*authority{"nobody": nil, "a stranger": stranger} {
		if _, err := serial(by); err == nil {
			t.Errorf("%s got in", who)
		}
	}
	if code, said := s.call(http.MethodGet, s.address, "/revisions"); code == http.StatusOK {
		t.Errorf("plain HTTP got in: %s", said)
	}
	issuer.issue(t, dir, "server")
	write(t, filepath.Join(dir, "ca.pem"), stranger.text)
	after, err := serial(stranger)
	if err != nil || after.Cmp(before) == 0 {
		t.Errorf("after the renewal: serial %d, %d before, %v", after, before, err)
	}
}

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	text        string // of the certificate, PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.text = encode("CERTIFICATE", der)
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue writes name.pem and name.key.
func (a *authority) issue(t *testing.T, dir, name string) tls.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, name+".pem"), encode("CERTIFICATE", der))
	write(t, filepath.Join(dir, name+".key"), encode("EC PRIVATE KEY", secret))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// Without permission to write the pod, the accepted revision is still recorded.
func TestRevisionIsRememberedThoughThePodCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const record = "/api/v1/namespaces/games/configmaps/sidecar-result"
	s.api.objects[record] = `{"metadata":{"name":"sidecar-result"}}`
	s.api.refused = podPath
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "one") }))
	defer origin.Close()
	s.mount(base + "plugins: [{name: hot_update, config: {fileDir: " + t.TempDir() + ", loadPatchType: none, fetch: {allowNetworks: [127.0.0.0/8]}, " +
		"storageConfig: {inKube: {annotationKey: a}}}}]\n")
	s.start()
	s.until("ready", ready(s))
	if code, said := s.call(http.MethodPost, s.address, "/hot-update?version=v1&url="+origin.URL+"/f"); code != http.StatusOK {
		t.Fatalf("%d %s", code, said)
	}
	s.until("remembered", func() bool {
		s.api.mu.Lock()
		defer s.api.mu.Unlock()
		return strings.Contains(s.api.objects[record], `Pod.gs-0`)
	})
	s.until("the failed write is counted", func() bool {
		_, said := s.call(http.MethodGet, s.health, "/metrics")
		return strings.Contains(said, `refit_sidecar_result_writes_total{outcome="failed",resource="pods"}`)
	})
}

// SidecarStartOrder and resources have an effect.
func TestStartOrderAndResources(t *testing.T) {
	t.Parallel()
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	s := newStage(t)
	s.mount(base + "sidecarStartOrder: After\nresources: {Memory: 1Gi}\nplugins: [{name: hot_update, config: {fileDir: " + t.TempDir() + ", loadPatchType: none}}]\n")
	s.start()
	s.until("served", func() bool { code, _ := s.call(http.MethodGet, s.health, "/healthz"); return code == http.StatusOK })
	if code, said := s.call(http.MethodGet, s.address, "/revisions"); code != http.StatusNotFound {
		t.Errorf("plugins run before the other container: %d %s", code, said)
	}
	if limit := debug.SetMemoryLimit(-1); limit < 1<<29 || limit > 1<<30 {
		t.Errorf("memory limit %d of 1 GiB", limit)
	}
	s.api.mu.Lock()
	s.api.put(podPath, strings.Replace(s.api.objects[podPath], `"status":{`, `"status":{"containerStatuses":[{"name":"app","started":true}],`, 1))
	s.api.mu.Unlock()
	s.until("ready", ready(s))
}

// Responses and logs contain nothing of a URL or of a probed body.
func TestSecretsStayOutOfAnswersAndLogs(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	s := newStage(t)
	body := write(t, filepath.Join(t.TempDir(), "body"), secret)
	s.mount(base + "plugins:\n- {name: hot_update, config: {fileDir: " + t.TempDir() + ", loadPatchType: none, fetch: {allowNetworks: [127.0.0.0/8], attempts: 1}}}\n" +
		"- name: http_probe\n  config: {startDelaySeconds: 1, endpoints: [{name: e, file: {path: " + body + "}, storageConfig: {inKube: {annotationKey: seen}}}]}\n")
	s.start()
	s.until("ready", ready(s))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address+"/hot-update",
		strings.NewReader("version=v1&url=http%3A%2F%2Fuser%3A"+secret+"%40127.0.0.1%3A1%2Ff%3Ftoken%3D"+secret))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusInternalServerError || strings.Contains(string(said), secret) {
		t.Errorf("%d %s %v", answer.StatusCode, said, err)
	}
	s.until("probed", func() bool { return s.api.pod().Annotations["seen"] == secret })
	if log := s.logged(); strings.Contains(log, secret) || !strings.Contains(log, "update failed") {
		t.Errorf("log:\n%s", log)
	}
}
