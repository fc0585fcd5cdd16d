package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/kube"
	"github.com/refit-project/refit/manager/certificates"
)

// CertificatesConfig is the configuration of IssueCertificates.
type CertificatesConfig struct {
	Kubeconfig      string   // file; empty for the pod's service account
	Namespace       string   // of the Secrets and the Service
	Service         string   // of the webhooks
	Secret          string   // for the serving certificate, which the manager reads
	AuthoritySecret string   // for the CA certificate and its key
	Webhooks        []string // names of the MutatingWebhookConfigurations
	Logger          *slog.Logger
}

// IssueCertificates creates or renews the certificates of the webhooks once. It runs with another account than the manager,
// because a user who may write a webhook configuration can intercept every object of the cluster.
func IssueCertificates(ctx context.Context, cfg CertificatesConfig) error {
	types := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(types), admissionregistrationv1.AddToScheme(types)); err != nil {
		return fmt.Errorf("register types: %w", err)
	}
	connection, err := kube.Config(cfg.Kubeconfig, Name)
	if err != nil {
		return err
	}
	api, err := client.New(connection, client.Options{Scheme: types})
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return certificates.Install(ctx, api, certificates.InstallConfig{
		Namespace: cfg.Namespace, Service: cfg.Service, Secret: cfg.Secret, AuthoritySecret: cfg.AuthoritySecret,
		Webhooks: cfg.Webhooks, Logger: cfg.Logger,
	}, time.Now())
}
