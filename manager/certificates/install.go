package certificates

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keyAuthority is the key of the CA certificates in a Secret, as in Secrets of cert-manager.
const keyAuthority = "ca.crt"

// InstallConfig names the objects that Install writes.
type InstallConfig struct {
	Namespace       string   // of the Secrets and the Service
	Service         string   // of the webhooks
	Secret          string   // for the serving certificate, which the manager reads
	AuthoritySecret string   // for the CA certificate and its key; nothing else may read it
	Webhooks        []string // names of the MutatingWebhookConfigurations whose caBundle is set
	Logger          *slog.Logger
}

// Install creates or renews the certificates of the webhooks, and sets the CA bundle in the webhook configurations. It
// writes only changes, so it can be run at any time. Both Secrets have to exist and may be empty.
//
// A new CA certificate is in the webhook configurations before a certificate signed with it is used, and the previous one
// stays until the next run, because replicas of the manager change over at different times.
func Install(ctx context.Context, api client.Client, cfg InstallConfig, now time.Time) error {
	var authority, serving corev1.Secret
	if err := api.Get(ctx, client.ObjectKey{Namespace: cfg.Namespace, Name: cfg.AuthoritySecret}, &authority); err != nil {
		return fmt.Errorf("get secret of the authority: %w", err)
	}
	if err := api.Get(ctx, client.ObjectKey{Namespace: cfg.Namespace, Name: cfg.Secret}, &serving); err != nil {
		return fmt.Errorf("get secret of the certificate: %w", err)
	}
	stored := State{
		Authority: KeyPair{Certificate: authority.Data[corev1.TLSCertKey], Key: authority.Data[corev1.TLSPrivateKeyKey]},
		Serving:   KeyPair{Certificate: serving.Data[corev1.TLSCertKey], Key: serving.Data[corev1.TLSPrivateKeyKey]},
		Bundle:    serving.Data[keyAuthority],
	}
	state, reason, err := Issue(stored, cfg.names(), now)
	if err != nil {
		return err
	}
	cfg.Logger.Info("checked certificates", "renewed", reason != "", "reason", reason)
	for _, name := range cfg.Webhooks {
		if err := publish(ctx, api, name, state.Bundle, cfg.Logger); err != nil {
			return err
		}
	}
	if err := store(ctx, api, &authority, state.Authority, nil); err != nil {
		return err
	}
	return store(ctx, api, &serving, state.Serving, state.Bundle)
}

// names returns the DNS names of the Service, for the API server and for users in the cluster.
func (c InstallConfig) names() []string {
	domain := c.Service + "." + c.Namespace
	return []string{domain + ".svc", domain, domain + ".svc.cluster.local"}
}

// publish sets the caBundle of every webhook of a configuration.
func publish(ctx context.Context, api client.Client, name string, bundle []byte, log *slog.Logger) error {
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	err := api.Get(ctx, client.ObjectKey{Name: name}, &configuration)
	if apierrors.IsNotFound(err) {
		log.Info("webhook configuration does not exist; its webhooks are not called", "name", name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("get webhook configuration: %w", err)
	}
	changed := false
	for i := range configuration.Webhooks {
		target := &configuration.Webhooks[i].ClientConfig
		changed = changed || !bytes.Equal(target.CABundle, bundle)
		target.CABundle = bundle
	}
	if !changed {
		return nil
	}
	if err := api.Update(ctx, &configuration); err != nil {
		return fmt.Errorf("write caBundle of webhook configuration %s: %w", name, err)
	}
	return nil
}

func store(ctx context.Context, api client.Client, secret *corev1.Secret, pair KeyPair, bundle []byte) error {
	data := map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key}
	if bundle != nil {
		data[keyAuthority] = bundle
	}
	changed := false
	for key, value := range data {
		changed = changed || !bytes.Equal(secret.Data[key], value)
	}
	if !changed {
		return nil
	}
	secret.Data = data
	if err := api.Update(ctx, secret); err != nil {
		return fmt.Errorf("write secret %s: %w", secret.Name, err)
	}
	return nil
}
