package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/kube"
)

// Name of the program: its user agent, lease, and the reporter of its Events.
const Name = "refit-manager"

// Run serves the webhooks and, on the replica that is elected, looks after requests, until ctx ends. It returns nil
// then, and an error when the election is lost or something could not be started.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("check configuration: %w", err)
	}
	log := logr.FromSlogHandler(cfg.Logger.Handler())
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	mgr, clock, err := build(cfg, log)
	if err != nil {
		return err
	}
	if cfg.CertRotation {
		if err := addCertificates(mgr, cfg); err != nil {
			return fmt.Errorf("set up certificates: %w", err)
		}
	}
	if err := addConversion(mgr); err != nil {
		return fmt.Errorf("set up conversion: %w", err)
	}
	if err := addAdmission(mgr, cfg); err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}
	if err := addLifecycle(mgr, cfg, clock); err != nil {
		return fmt.Errorf("set up lifecycle: %w", err)
	}
	if err := addReadiness(mgr, clock); err != nil {
		return fmt.Errorf("set up readiness: %w", err)
	}
	if cfg.PodProbes {
		if err := addPodProbes(ctx, mgr, cfg, clock); err != nil {
			return fmt.Errorf("set up pod probes: %w", err)
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// build makes the connection, the caches and the servers. The second result tells the API server's time, in which
// the times of requests are written.
func build(cfg Config, log logr.Logger) (ctrl.Manager, func() time.Time, error) {
	types, err := newScheme()
	if err != nil {
		return nil, nil, err
	}
	connection, err := kube.Config(cfg.Kubeconfig, Name)
	if err != nil {
		return nil, nil, err
	}
	var clock kube.Clock
	connection.Wrap(clock.Wrap)
	mgr, err := ctrl.NewManager(connection, ctrl.Options{
		Scheme:                        types,
		Logger:                        log,
		Cache:                         cacheOptions(cfg),
		WebhookServer:                 newServer(cfg),
		Metrics:                       metricsOptions(cfg),
		HealthProbeBindAddress:        cfg.HealthAddr,
		LeaderElection:                cfg.LeaderElect,
		LeaderElectionID:              Name,
		LeaderElectionNamespace:       cfg.Namespace,
		LeaderElectionReleaseOnCancel: true, // main returns right after Run
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make manager: %w", err)
	}
	return mgr, func() time.Time { return time.Now().Add(clock.Offset()) }, nil
}

func newScheme() (*runtime.Scheme, error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(types); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	return types, nil
}

func newServer(cfg Config) webhook.Server {
	return patientServer{certDir: cfg.CertDir, Server: webhook.NewServer(webhook.Options{
		Port:    cfg.WebhookPort,
		CertDir: cfg.CertDir,
		// HTTP/2 brings nothing to an API server's few connections and has had its denials of service.
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	})}
}

func metricsOptions(cfg Config) metricsserver.Options {
	options := metricsserver.Options{BindAddress: cfg.MetricsAddr}
	if cfg.MetricsAddr != "0" && !onLoopback(cfg.MetricsAddr) {
		options.SecureServing = true
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
