package manager

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/refit-project/refit/manager/callers"
	"github.com/refit-project/refit/manager/certificates"
)

// newServer returns the server of the webhooks, and who may call them.
func newServer(cfg Config, loader *certificates.Loader) (webhook.Server, *callers.Callers, error) {
	authority, err := clientAuthority(cfg.WebhookClientCAFile)
	if err != nil {
		return nil, nil, err
	}
	checked, err := callers.New(callers.Config{
		RefusePods: cfg.RefusePods, AllowedNamespaces: cfg.WebhookNamespaces, Certificates: authority != nil, Metrics: metrics.Registry, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, nil, err
	}
	server := webhook.NewServer(webhook.Options{Port: cfg.WebhookPort, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = loader.GetCertificate
		// HTTP/2 has no advantage for the few connections of API servers, and has had denial-of-service vulnerabilities.
		c.NextProtos = []string{"http/1.1"}
		verifyClients(c, authority)
	}}})
	return checked.Server(server), checked, nil
}

// clientAuthority reads the certificates of the authority of clients; nil without a file.
func clientAuthority(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the authority of callers of the webhooks: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the authority of callers of the webhooks: %s has no certificate in PEM", file)
	}
	return pool, nil
}

// verifyClients has the server verify client certificates. That there is one is checked for each call, because /readyz
// connects without one.
func verifyClients(c *tls.Config, authority *x509.CertPool) {
	if authority != nil {
		c.ClientCAs, c.ClientAuth = authority, tls.VerifyClientCertIfGiven
	}
}
