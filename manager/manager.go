package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/kube"
	"github.com/refit-project/refit/kube/serverclock"
	"github.com/refit-project/refit/manager/cache"
	"github.com/refit-project/refit/manager/certificates"
	"github.com/refit-project/refit/manager/configchanges"
	"github.com/refit-project/refit/manager/disruptions"
	"github.com/refit-project/refit/manager/images"
	"github.com/refit-project/refit/manager/podprobes"
	"github.com/refit-project/refit/manager/requests"
	"github.com/refit-project/refit/manager/rollouts"
	"github.com/refit-project/refit/manager/sidecarset/injection"
	"github.com/refit-project/refit/manager/sidecarset/rollout"
	"github.com/refit-project/refit/tracing"
	"github.com/refit-project/refit/wait"
)

// Name of the program: its user agent, its Lease, and the reporting controller of its Events.
const Name = "refit-manager"

// collectAt is the default of GOGC: what the manager keeps of pods is large and changes little, and with Go's default of 100
// as much memory again would be garbage.
const collectAt = 50

// If the leader dies, another replica leads within 20 s: it looks at the Lease every retryPeriod, or up to
// leaderelection.JitterFactor of it later, and takes it when it has not changed for leaseDuration.
const (
	leaseDuration = 13 * time.Second
	renewDeadline = 10 * time.Second // as is usual: the leader survives that long without the API server
	retryPeriod   = 1500 * time.Millisecond
)

// Run serves the webhooks and, on the replica that is elected, runs the controllers, until ctx ends. It returns nil then,
// and an error when the election is lost or something could not be started.
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

// run waits until the API server answers, and then runs the webhooks and the controllers.
func run(ctx context.Context, cfg Config, connection *rest.Config, clock func() time.Time, probes *health) error {
	user, err := userName(ctx, connection, cfg.Logger)
	if err != nil {
		return err
	}
	loader := certificates.NewLoader(certificates.Config{Namespace: cfg.Namespace, Secret: cfg.CertSecret, Clock: clock, Logger: cfg.Logger})
	mgr, err := newManager(connection, cfg, loader)
	if err != nil {
		return err
	}
	if err := index(ctx, mgr.GetFieldIndexer(), cfg); err != nil {
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
	if err := addConcerns(mgr, cfg, traces, user, clock); err != nil {
		return err
	}
	probes.ready(readinessChecks(cfg, loader.Ready, mgr.GetWebhookServer().StartedChecker()))
	return mgr.Start(ctx)
}

// index makes the indexes of the cache, for which the API server is asked which kinds it has.
func index(ctx context.Context, indexer client.FieldIndexer, cfg Config) error {
	if err := cache.IndexPods(ctx, indexer); err != nil {
		return err
	}
	if !cfg.SidecarSetRollout {
		return nil
	}
	return rollout.Index(ctx, indexer)
}

// addConcerns adds the packages with controllers of the API's objects, each with what it needs.
func addConcerns(mgr ctrl.Manager, cfg Config, traces *tracing.Provider, user string, clock func() time.Time) error {
	ledger := disruptions.NewLedger(clock)
	nodes, recorder := cache.NewNodes(mgr.GetClient(), mgr.GetAPIReader()), mgr.GetEventRecorder(Name)
	addRequests := requests.Add
	if !cfg.ContainerRecreateRequests {
		addRequests = requests.AddNothing
	}
	err := addRequests(mgr, requests.Config{
		Workers: cfg.Workers, User: user, Nodes: nodes, Daemons: cache.Daemons{Refit: cfg.Namespace, Kruise: cfg.OpenKruiseNamespace}, Clock: clock, Recorder: recorder,
		Metrics: metrics.Registry, Tracer: traces.Tracer(Name), Logger: cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("set up ContainerRecreateRequests: %w", err)
	}
	if cfg.RestartRollouts {
		err := rollouts.Add(mgr, rollouts.Config{
			Workers: cfg.Workers, User: user, Clock: clock, Disruptions: ledger, Recorder: recorder, Metrics: metrics.Registry, Logger: cfg.Logger,
		})
		if err != nil {
			return fmt.Errorf("set up RestartRollouts: %w", err)
		}
	}
	if cfg.RestartRollouts && cfg.ConfigChanges {
		err := configchanges.Add(mgr, configchanges.Config{Workers: cfg.Workers, Secrets: cfg.SecretChanges, Clock: clock, Recorder: recorder, Logger: cfg.Logger})
		if err != nil {
			return fmt.Errorf("set up restarts on changes of ConfigMaps: %w", err)
		}
	}
	if cfg.Images {
		err := images.Add(mgr, images.Config{
			Workers: cfg.Workers, Nodes: nodes, Live: mgr.GetAPIReader(), SecretNamespace: cfg.PullSecretNamespace, Clock: clock,
			Recorder: recorder, Logger: cfg.Logger,
		})
		if err != nil {
			return fmt.Errorf("set up image pulls: %w", err)
		}
	}
	if err := addSidecarSets(mgr, cfg, ledger, clock); err != nil {
		return fmt.Errorf("set up injection of SidecarSets: %w", err)
	}
	if !cfg.PodProbes {
		return nil
	}
	err = podprobes.Add(mgr, podprobes.Config{
		Workers: cfg.Workers, EmptyNodePodProbes: cfg.EmptyNodePodProbes,
		Nodes: nodes, Clock: clock, Recorder: recorder, Metrics: metrics.Registry, Logger: cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("set up PodProbeMarkers: %w", err)
	}
	return nil
}

func addSidecarSets(mgr ctrl.Manager, cfg Config, ledger *disruptions.Ledger, clock func() time.Time) error {
	add := injection.Add
	if !cfg.SidecarSets {
		add = injection.AddNothing
	}
	err := add(mgr, injection.Config{Namespace: cfg.Namespace, Clock: clock, Metrics: metrics.Registry, Logger: cfg.Logger})
	if err != nil || !cfg.SidecarSetRollout {
		return err
	}
	return rollout.Add(mgr, rollout.Config{
		Namespace: cfg.Namespace, Workers: cfg.Workers, Live: mgr.GetAPIReader(), PrePull: cfg.Images, Disruptions: ledger, Clock: clock,
		Recorder: mgr.GetEventRecorder(Name), Metrics: metrics.Registry, Logger: cfg.Logger,
	})
}

// everyReplica runs on every replica: webhooks are traced on those that do not lead too.
type everyReplica struct{ run func(context.Context) error }

func (e everyReplica) Start(ctx context.Context) error { return e.run(ctx) }
func (everyReplica) NeedLeaderElection() bool          { return false }

// answerTimeout is how long the API server may take for the first answer before it is asked again.
const answerTimeout = 5 * time.Second

// userName is the name that the API server knows the manager by. It waits until the API server answers.
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

// connect returns the connection to the API server and its clock, in which the times of requests are written.
func connect(kubeconfig string) (*rest.Config, func() time.Time, error) {
	connection, err := kube.Config(kubeconfig, Name)
	if err != nil {
		return nil, nil, err
	}
	var clock serverclock.Clock
	connection.Wrap(clock.Wrap)
	return connection, func() time.Time { return time.Now().Add(clock.Offset()) }, nil
}

// newManager makes the caches and the servers.
func newManager(connection *rest.Config, cfg Config, loader *certificates.Loader) (ctrl.Manager, error) {
	types, err := newScheme()
	if err != nil {
		return nil, err
	}
	added := []cache.ByObject{loader.ByObject()}
	if cfg.PodProbes {
		added = append(added, podprobes.ByObject())
	}
	if cfg.SidecarSets || cfg.SidecarSetRollout {
		added = append(added, injection.ByObject(cfg.Namespace))
	}
	mgr, err := ctrl.NewManager(connection, ctrl.Options{
		Scheme:                        types,
		Logger:                        logr.FromSlogHandler(cfg.Logger.Handler()),
		Cache:                         cache.Options(added...),
		WebhookServer:                 newServer(cfg.WebhookPort, loader),
		Metrics:                       metricsOptions(cfg),
		HealthProbeBindAddress:        "0", // type health serves it, also before there is a manager
		LeaderElection:                cfg.LeaderElect,
		LeaderElectionID:              Name,
		LeaderElectionNamespace:       cfg.Namespace,
		LeaderElectionReleaseOnCancel: true, // main returns right after Run
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
	})
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	return mgr, nil
}

func newScheme() (*runtime.Scheme, error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme, refitv1alpha1.AddToScheme,
	} {
		if err := add(types); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	return types, nil
}

func newServer(port int, loader *certificates.Loader) webhook.Server {
	return webhook.NewServer(webhook.Options{Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = loader.GetCertificate
		// HTTP/2 has no advantage for the few connections of API servers, and has had denial-of-service vulnerabilities.
		c.NextProtos = []string{"http/1.1"}
	}}})
}

func metricsOptions(cfg Config) metricsserver.Options {
	options := metricsserver.Options{BindAddress: cfg.MetricsAddr}
	if cfg.MetricsAddr != "0" && !onLoopback(cfg.MetricsAddr) {
		options.SecureServing = true
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
