// Package certificates provides the webhook server with its serving certificate.
package certificates

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/refit-project/refit/manager/cache"
)

// MutatingWebhook is the name of the MutatingWebhookConfiguration that calls the manager.
const MutatingWebhook = "refit-manager"

// caName is the subject of the certificate authority, for whoever looks at the certificate.
const caName = "refit-manager-ca"

const certFile, keyFile = "tls.crt", "tls.key"

// Config is what the package needs from the manager.
type Config struct {
	Namespace string // of Secret and Service
	Secret    string // name of the Secret that keeps the certificate
	Service   string // name of the Service in front of the webhooks
	Dir       string // of tls.crt and tls.key, which the webhook server reads
}

// ByObject are the cache options of the types that only this package reads.
func ByObject(cfg Config) cache.ByObject {
	return cache.ByObject{&corev1.Secret{}: ctrlcache.ByObject{Namespaces: map[string]ctrlcache.Config{
		cfg.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", cfg.Secret)},
	}}}
}

// Add has the certificate made and renewed, and its authority written to the webhook configuration. The
// certificate is kept in a Secret, which every replica copies to its own directory: a Secret mounted as a volume would
// arrive up to a minute later, when kubelet next syncs.
func Add(mgr ctrl.Manager, cfg Config) error {
	key := types.NamespacedName{Namespace: cfg.Namespace, Name: cfg.Secret}
	ready := make(chan struct{})
	domain := cfg.Service + "." + cfg.Namespace
	err := rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      key,
		CertDir:        cfg.Dir,
		CAName:         caName,
		CAOrganization: "refit",
		DNSName:        domain + ".svc",
		ExtraDNSNames:  []string{domain, domain + ".svc.cluster.local"},
		IsReady:        ready,
		FieldOwner:     MutatingWebhook,
		Webhooks: []rotator.WebhookInfo{
			{Name: MutatingWebhook, Type: rotator.Mutating},
		},
	})
	if err != nil {
		return err
	}
	err = mgr.AddReadyzCheck("certificate", func(*http.Request) error {
		select {
		case <-ready:
			return nil
		default:
			return errors.New("the certificate is not yet loaded")
		}
	})
	if err != nil {
		return err
	}
	everywhere := false
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificate").
		For(&corev1.Secret{}).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere}).
		Complete(certCopier{secrets: mgr.GetClient(), key: key, dir: cfg.Dir})
}

// certCopier keeps the files of the webhook server equal to the Secret.
type certCopier struct {
	secrets client.Reader
	key     types.NamespacedName
	dir     string
}

func (c certCopier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request.NamespacedName != c.key {
		return ctrl.Result{}, nil
	}
	var secret corev1.Secret
	if err := c.secrets.Get(ctx, c.key, &secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// The certificate last: the server waits for it and reads both.
	for _, name := range []string{keyFile, certFile} {
		if err := replace(filepath.Join(c.dir, name), secret.Data[name]); err != nil {
			return ctrl.Result{}, fmt.Errorf("copy %s of secret %s: %w", name, c.key, err)
		}
	}
	return ctrl.Result{}, nil
}

// replace atomically replaces a file, unless its content is the same or there is none to write.
func replace(path string, data []byte) error {
	if old, err := os.ReadFile(path); len(data) == 0 || err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// server is a webhook server that starts as soon as its certificate exists.
type server struct {
	webhook.Server
	certDir string
}

// NewServer makes a webhook server that starts as soon as options.CertDir holds a certificate.
func NewServer(options webhook.Options) webhook.Server {
	return server{Server: webhook.NewServer(options), certDir: options.CertDir}
}

// certPoll is how often the server checks whether the certificate exists.
const certPoll = 100 * time.Millisecond

func (s server) Start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, certPoll, true, func(context.Context) (bool, error) {
		_, err := os.Stat(filepath.Join(s.certDir, certFile))
		return err == nil, nil
	})
	if err != nil {
		return nil // stopped before there was a certificate
	}
	return s.Server.Start(ctx)
}
