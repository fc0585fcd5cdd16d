package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/refit-project/refit/test/cluster/pki"
)

func TestIssue(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	authority, err := pki.Open(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	subject := pki.Subject{Name: "system:node:node-1", Groups: []string{"system:nodes"}, Hosts: []string{"node-1", "10.245.0.1"}}
	if err := authority.Issue("node-1", subject); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		t.Fatalf("read the authority's certificate: %v", err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "node-1.crt"), filepath.Join(dir, "node-1.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "10.245.0.1", KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			t.Errorf("usage %d: %v", usage, err)
		}
	}
	if pair.Leaf.Subject.CommonName != subject.Name || pair.Leaf.Subject.Organization[0] != "system:nodes" {
		t.Errorf("subject = %v", pair.Leaf.Subject)
	}
}

func TestOpenAndIssueKeepWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var certificates []string
	for range 2 {
		authority, err := pki.Open(dir, "ca")
		if err != nil {
			t.Fatal(err)
		}
		if err := authority.Issue("admin", pki.Subject{Name: "admin"}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "kubeconfig")
		if err := authority.Kubeconfig(path, "https://127.0.0.1:1", "admin"); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil || !json.Valid(content) {
			t.Fatalf("kubeconfig %q: %v", content, err)
		}
		certificates = append(certificates, string(content))
	}
	if certificates[0] != certificates[1] {
		t.Error("a second run made new certificates")
	}
}
