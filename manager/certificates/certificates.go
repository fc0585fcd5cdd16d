package manager

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/refit-project/refit/api/v1beta1"
)

// MutatingWebhook is the name of the MutatingWebhookConfiguration that calls the manager.
const MutatingWebhook = "refit-manager"

// caName is the subject of the certificate authority, for whoever looks at the certificate.
const caName = "refit-manager-ca"

const certFile, keyFile = "tls.crt", "tls.key"

// addCertificates has the certificate made and renewed, and the webhook configuration and the CRD told of its
// authority. It is kept in a Secret, which every replica copies to its own directory: a Secret mounted as a volume
// would arrive up to a minute later, when kubelet next looks.
func addCertificates(mgr ctrl.Manager, cfg Config) error {
	key := types.NamespacedName{Namespace: cfg.Namespace, Name: cfg.CertSecret}
	ready := make(chan struct{})
	domain := cfg.WebhookService + "." + cfg.Namespace
	err := rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      key,
		CertDir:        cfg.CertDir,
		CAName:         caName,
		CAOrganization: "refit",
		DNSName:        domain + ".svc",
		ExtraDNSNames:  []string{domain, domain + ".svc.cluster.local"},
		IsReady:        ready,
		FieldOwner:     Name,
		Webhooks: []rotator.WebhookInfo{
			{Name: MutatingWebhook, Type: rotator.Mutating},
			{Name: v1beta1.ResourceContainerRecreateRequest + "." + v1beta1.Group, Type: rotator.CRDConversion},
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
			return errors.New("the certificate is not in use yet")
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
		Complete(certCopier{secrets: mgr.GetClient(), key: key, dir: cfg.CertDir})
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

// replace puts a whole new file in place of the old one, unless they are equal or there is nothing to write.
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

// patientServer is a webhook server that starts when its certificate is there.
type patientServer struct {
	webhook.Server
	certDir string
}

// certPoll is how often a server without certificate looks for it.
const certPoll = 100 * time.Millisecond

func (s patientServer) Start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, certPoll, true, func(context.Context) (bool, error) {
		_, err := os.Stat(filepath.Join(s.certDir, certFile))
		return err == nil, nil
	})
	if err != nil {
		return nil // told to stop before there was anything to serve with
	}
	return s.Server.Start(ctx)
}
