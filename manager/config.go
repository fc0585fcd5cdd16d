package manager

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Config is everything that can be chosen about a manager. The zero value is not valid.
type Config struct {
	Kubeconfig string // file; empty for the pod's service account
	Namespace  string // of the manager itself: its lease, certificate secret and webhook service

	WebhookPort    int    // TCP port of both webhooks
	WebhookService string // name of the Service in front of them
	CertDir        string // holds tls.crt and tls.key; written by the manager itself when CertRotation is on
	CertRotation   bool   // make, renew and publish the certificate
	CertSecret     string // name of the Secret it is kept in

	MetricsAddr string // host:port; plain HTTP on loopback, HTTPS with authorization elsewhere; "0" for none
	HealthAddr  string // host:port of /healthz and /readyz

	LeaderElect bool // needed with more than one replica
	Workers     int  // requests looked after at a time
	PodProbes   bool // look after PodProbeMarkers

	Logger *slog.Logger
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(validation.IsDNS1123Label(c.Namespace)) > 0 {
		fault("namespace %q is no name of a namespace", c.Namespace)
	}
	if c.WebhookPort < 1 || c.WebhookPort > 65535 {
		fault("webhook port %d is not between 1 and 65535", c.WebhookPort)
	}
	if !filepath.IsAbs(c.CertDir) {
		fault("certificate directory %q is not an absolute path", c.CertDir)
	}
	if c.CertRotation {
		if len(validation.IsDNS1035Label(c.WebhookService)) > 0 {
			fault("webhook service %q is no name of a Service", c.WebhookService)
		}
		if len(validation.IsDNS1123Subdomain(c.CertSecret)) > 0 {
			fault("certificate secret %q is no name of a Secret", c.CertSecret)
		}
	}
	if c.MetricsAddr != "0" {
		if err := checkAddress(c.MetricsAddr); err != nil {
			fault("metrics address: %w", err)
		}
	}
	if err := checkAddress(c.HealthAddr); err != nil {
		fault("health address: %w", err)
	}
	if c.Workers < 1 {
		fault("%d workers: at least 1 is needed", c.Workers)
	}
	if c.Logger == nil {
		fault("no logger")
	}
	return errors.Join(faults...)
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no port between 0 and 65535", address)
	}
	return nil
}

// onLoopback reports whether only programs of the same pod can reach the address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
