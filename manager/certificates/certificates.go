// Package certificates issues the serving certificate of the webhooks (Install, which runs with an account of its own) and
// loads it into the webhook server of the running manager (Loader), which may read one Secret and write nothing.
package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/refit-project/refit/internal/cache"
)

const (
	// expiryWarning is how long before the expiry of a certificate a warning is logged, once a day.
	expiryWarning = 30 * day
)

// Config is the configuration of the package.
type Config struct {
	Namespace string // of the Secret
	Secret    string // name of the Secret with tls.crt and tls.key
	Clock     func() time.Time
	Logger    *slog.Logger
}

// Loader keeps the certificate of the webhook server equal to the one in the Secret, without a restart.
type Loader struct {
	key     types.NamespacedName
	now     func() time.Time
	log     *slog.Logger
	current atomic.Pointer[tls.Certificate]
	expiry  prometheus.Gauge
}

// NewLoader returns a Loader without a certificate.
func NewLoader(cfg Config) *Loader {
	return &Loader{
		key: types.NamespacedName{Namespace: cfg.Namespace, Name: cfg.Secret}, now: cfg.Clock, log: cfg.Logger,
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "refit_manager_certificate_expiry_timestamp_seconds",
			Help: "Unix time at which the serving certificate of the webhooks expires; 0 before one is loaded.",
		}),
	}
}

// ByObject returns the cache options of the types that only this package reads.
func (l *Loader) ByObject() cache.ByObject {
	return cache.ByObject{&corev1.Secret{}: ctrlcache.ByObject{Namespaces: map[string]ctrlcache.Config{
		l.key.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", l.key.Name)},
	}}}
}

// GetCertificate returns the current certificate; it is for tls.Config.
func (l *Loader) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := l.current.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, l.missing()
}

func (l *Loader) missing() error {
	return fmt.Errorf("secret %s has no certificate: has the Job refit-certificates run?", l.key)
}

// Add adds the controller that watches the Secret, on every replica.
func Add(mgr ctrl.Manager, loader *Loader, metrics prometheus.Registerer) error {
	if err := metrics.Register(loader.expiry); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	everyReplica := false
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificate").
		For(&corev1.Secret{}).
		WithOptions(controller.Options{NeedLeaderElection: &everyReplica}).
		Complete(&reconciler{Loader: loader, secrets: mgr.GetClient()})
}

// Ready returns why the API server cannot call the webhooks of this replica. It is a healthz.Checker.
func (l *Loader) Ready(*http.Request) error {
	certificate := l.current.Load()
	if certificate == nil {
		return l.missing()
	}
	if end := certificate.Leaf.NotAfter; !l.now().Before(end) {
		return fmt.Errorf("certificate of secret %s has expired at %s: run the Job refit-certificates", l.key, end.Format(time.RFC3339))
	}
	return nil
}

type reconciler struct {
	*Loader
	secrets client.Reader
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request.NamespacedName != r.key {
		return ctrl.Result{}, nil
	}
	var secret corev1.Secret
	if err := r.secrets.Get(ctx, r.key, &secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return r.load(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
}

// load parses a certificate and uses it. If it cannot be parsed, the previous one stays in use.
func (l *Loader) load(certificate, key []byte) (ctrl.Result, error) {
	if len(certificate) == 0 || len(key) == 0 {
		l.log.Info("waiting for the certificate", "secret", l.key.String())
		return ctrl.Result{}, nil
	}
	loaded, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return ctrl.Result{}, errors.Join(fmt.Errorf("load certificate of secret %s", l.key), err)
	}
	end := loaded.Leaf.NotAfter
	if before := l.current.Swap(&loaded); before == nil || !before.Leaf.Equal(loaded.Leaf) {
		l.log.Info("certificate loaded", "secret", l.key.String(), "expires", end)
	}
	l.expiry.Set(float64(end.Unix()))
	left := end.Sub(l.now())
	if left > expiryWarning {
		return ctrl.Result{RequeueAfter: left - expiryWarning}, nil
	}
	l.log.Warn("certificate expires soon or has expired, and has not been renewed", "secret", l.key.String(), "expires", end)
	return ctrl.Result{RequeueAfter: day}, nil
}
