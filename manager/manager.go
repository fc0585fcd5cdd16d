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
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/kube"
	"github.com/refit-project/refit/manager/cache"
	"github.com/refit-project/refit/manager/certificates"
	"github.com/refit-project/refit/manager/podprobes"
	"github.com/refit-project/refit/manager/requests"
)

// Name of the program: its user agent, its Lease, and the reporting controller of its Events.
const Name = "refit-manager"

// Run serves the webhooks and, on the replica that is elected, runs the controllers, until ctx ends. It returns nil then,
// and an error when the election is lost or something could not be started.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("check configuration: %w", err)
	}
	log := logr.FromSlogHandler(cfg.Logger.Handler())
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	mgr, clock, err := newManager(cfg, log)
	if err != nil {
		return err
	}
	if err := cache.IndexPods(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := addConcerns(mgr, cfg, clock); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addConcerns adds the packages below this one, each with what it needs.
func addConcerns(mgr ctrl.Manager, cfg Config, clock func() time.Time) error {
	nodes, recorder := cache.NewNodes(mgr.GetClient(), mgr.GetAPIReader()), mgr.GetEventRecorder(Name)
	if cfg.CertRotation {
		if err := certificates.Add(mgr, cfg.certificates()); err != nil {
			return fmt.Errorf("set up certificates: %w", err)
		}
	}
	err := requests.Add(mgr, requests.Config{
		Workers: cfg.Workers, Nodes: nodes, Clock: clock, Recorder: recorder, Metrics: metrics.Registry, Logger: cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("set up ContainerRecreateRequests: %w", err)
	}
	if !cfg.PodProbes {
		return nil
	}
	err = podprobes.Add(mgr, podprobes.Config{
		Workers: cfg.Workers, Nodes: nodes, Clock: clock, Recorder: recorder, Metrics: metrics.Registry, Logger: cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("set up PodProbeMarkers: %w", err)
	}
	return nil
}

// newManager makes the connection, the caches and the servers. The second result is the API server's time, in which the
// times of requests are written.
func newManager(cfg Config, log logr.Logger) (ctrl.Manager, func() time.Time, error) {
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

func cacheOptions(cfg Config) ctrlcache.Options {
	var added []cache.ByObject
	if cfg.CertRotation {
		added = append(added, certificates.ByObject(cfg.certificates()))
	}
	if cfg.PodProbes {
		added = append(added, podprobes.ByObject())
	}
	return cache.Options(added...)
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
	return certificates.NewServer(webhook.Options{
		Port:    cfg.WebhookPort,
		CertDir: cfg.CertDir,
		// HTTP/2 has no advantage for the few connections of API servers, and has had denial-of-service vulnerabilities.
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	})
}

func metricsOptions(cfg Config) metricsserver.Options {
	options := metricsserver.Options{BindAddress: cfg.MetricsAddr}
	if cfg.MetricsAddr != "0" && !onLoopback(cfg.MetricsAddr) {
		options.SecureServing = true
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
