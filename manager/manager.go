package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	imagecontrol "github.com/refit-project/refit/image/control"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/freememory"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/internal/kube"
	"github.com/refit-project/refit/internal/kube/serverclock"
	"github.com/refit-project/refit/internal/tracing"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/manager/certificates"
	probecontrol "github.com/refit-project/refit/probe/control"
	"github.com/refit-project/refit/rollout/control/workload"
	sidecarsetcontrol "github.com/refit-project/refit/sidecarset/control"
	sidecarsetwebhook "github.com/refit-project/refit/sidecarset/webhook"
)

// Name is the name of the program: its user agent, its Lease, and the reporting controller of its Events.
const Name = "refit-manager"

// collectAt is the default of GOGC. The cached pods are large and change little; with Go's default of 100 as much memory
// again would be garbage.
const collectAt = 50

// If the leader fails, another replica leads within 20 s: it reads the Lease every retryPeriod, or up to
// leaderelection.JitterFactor of it later, and takes it when it has not changed for leaseDuration.
const (
	leaseDuration = 13 * time.Second
	renewDeadline = 10 * time.Second // the default: the leader continues that long without the API server
	retryPeriod   = 1500 * time.Millisecond
)

// shutdownTimeout bounds the time from SIGTERM until the process ends. With the preStop hook of its container it has to be shorter than the
// grace period of its pod: after that the Lease is not given up.
const shutdownTimeout = 20 * time.Second

// Run serves the webhooks and, on the elected replica, runs the controllers, until ctx ends. It returns nil then, and an
// error if the election is lost or something could not be started.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("check configuration: %w", err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	log := logr.FromSlogHandler(cfg.Logger.Handler())
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	connection, clock, err := connect(cfg.Kubeconfig)
	if err != nil {
		return err
	}
	probes := &health{}
	group, running := errgroup.WithContext(ctx)
	if err := probes.serve(running, group, cfg.HealthAddr); err != nil {
		return err
	}
	group.Go(func() error { return run(running, cfg, connection, clock, probes) })
	if err := group.Wait(); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return err
	}
	return nil
}

// run waits until the API server responds, and then runs the webhooks and the controllers.
func run(ctx context.Context, cfg Config, connection *rest.Config, clock func() time.Time, probes *health) error {
	user, err := userName(ctx, connection, cfg.Logger)
	if err != nil {
		return err
	}
	loader := certificates.NewLoader(certificates.Config{Namespace: cfg.Namespace, Secret: cfg.CertSecret, Clock: clock, Logger: cfg.Logger})
	server, calling, err := newServer(cfg, loader)
	if err != nil {
		return err
	}
	mgr, guarded, err := newManager(connection, cfg, loader, server)
	if err != nil {
		return err
	}
	if err := index(ctx, mgr.GetFieldIndexer(), cfg); err != nil {
		return err
	}
	if err := calling.Watch(ctx, mgr.GetCache(), mgr.GetAPIReader()); err != nil {
		return err
	}
	if err := certificates.Add(mgr, loader, metrics.Registry); err != nil {
		return fmt.Errorf("set up certificates: %w", err)
	}
	traces, err := tracing.New(ctx, cfg.Tracing, Name, cfg.Version)
	if err != nil {
		return err
	}
	if err := mgr.Add(everyReplica{traces.Run}); err != nil {
		return err
	}
	if err := mgr.Add(everyReplica{freememory.AfterBursts}); err != nil {
		return err
	}
	if err := addConcerns(mgr, cfg, guarded, traces, user, clock); err != nil {
		return err
	}
	probes.ready(readinessChecks(cfg, loader.Ready, mgr.GetWebhookServer().StartedChecker()))
	return mgr.Start(ctx)
}

// index adds the indexes of the cache. It asks the API server which kinds it serves.
func index(ctx context.Context, indexer client.FieldIndexer, cfg Config) error {
	if err := cache.IndexPods(ctx, indexer); err != nil {
		return err
	}
	if cfg.InPlaceUpdates {
		if err := workload.Index(ctx, indexer); err != nil {
			return err
		}
	}
	if !cfg.SidecarSetRollout {
		return nil
	}
	return sidecarsetcontrol.Index(ctx, indexer)
}

// everyReplica is a runnable for every replica: the webhooks are served, and the objects cached, on replicas that do not lead too.
type everyReplica struct{ run func(context.Context) error }

func (e everyReplica) Start(ctx context.Context) error { return e.run(ctx) }
func (everyReplica) NeedLeaderElection() bool          { return false }

// answerTimeout bounds the wait for the first response of the API server before a retry.
const answerTimeout = 5 * time.Second

// userName returns the manager's user name in the API server. It waits until the API server responds.
func userName(ctx context.Context, connection *rest.Config, logger *slog.Logger) (string, error) {
	api, err := kube.NewClient(connection)
	if err != nil {
		return "", err
	}
	var name string
	err = wait.Retry(ctx, logger, "ask the API server for the manager's user name", func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		name, err = api.UserName(ctx)
		return err
	})
	return name, err
}

// connect returns the connection to the API server and a clock with its time, because the times in requests are written by
// it.
func connect(kubeconfig string) (*rest.Config, func() time.Time, error) {
	connection, err := kube.Config(kubeconfig, Name)
	if err != nil {
		return nil, nil, err
	}
	var clock serverclock.Clock
	connection.Wrap(clock.Wrap)
	return connection, func() time.Time { return time.Now().Add(clock.Offset()) }, nil
}

// newManager creates the caches and the servers, and their guard, because a panic in what an informer calls would end the
// program.
func newManager(connection *rest.Config, cfg Config, loader *certificates.Loader, server webhook.Server) (mgr ctrl.Manager, guarded *guard.Guard, err error) {
	types, err := newScheme()
	if err != nil {
		return nil, nil, err
	}
	guarded, err = newGuard(metrics.Registry, cfg.Logger, func() events.EventRecorder { return mgr.GetEventRecorder(Name) })
	if err != nil {
		return nil, nil, err
	}
	added := []cache.ByObject{loader.ByObject()}
	if cfg.PodProbes {
		added = append(added, probecontrol.ByObject())
	}
	if cfg.Images {
		added = append(added, imagecontrol.ByObject())
	}
	if cfg.SidecarSets || cfg.SidecarSetRollout {
		added = append(added, sidecarsetwebhook.ByObject(sidecarsetwebhook.Config{Namespace: cfg.Namespace, OpenKruise: cfg.revisionNamespace()}))
	}
	cached := cache.Options(cachedPods(cfg), added...)
	cached.NewInformer = guardcontrol.NewInformer(guarded)
	mgr, err = ctrl.NewManager(connection, ctrl.Options{
		Scheme:                        types,
		Logger:                        logr.FromSlogHandler(cfg.Logger.Handler()),
		Cache:                         cached,
		WebhookServer:                 server,
		Metrics:                       metricsOptions(cfg),
		HealthProbeBindAddress:        "0", // type health serves it, even before the manager is created
		LeaderElection:                cfg.LeaderElect,
		LeaderElectionID:              Name,
		LeaderElectionNamespace:       cfg.Namespace,
		LeaderElectionReleaseOnCancel: true, // main returns right after Run
		GracefulShutdownTimeout:       new(shutdownTimeout),
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make manager: %w", err)
	}
	return pagedManager{mgr, cache.Paged(mgr.GetAPIReader())}, guarded, nil
}

// pagedManager is a manager whose reader from the API server lists in pages: tenants decide how large objects are.
type pagedManager struct {
	ctrl.Manager
	live client.Reader
}

// GetAPIReader implements ctrl.Manager.
func (m pagedManager) GetAPIReader() client.Reader { return m.live }

func metricsOptions(cfg Config) metricsserver.Options {
	options := metricsserver.Options{BindAddress: cfg.MetricsAddr}
	if cfg.MetricsAddr != "0" && !onLoopback(cfg.MetricsAddr) {
		options.SecureServing = true
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
