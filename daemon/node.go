package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/cri"
	crrnode "github.com/refit-project/refit/crr/node"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/kube"
	"github.com/refit-project/refit/internal/tracing"
	"github.com/refit-project/refit/internal/wait"
)

// node has what the packages share: the connections to the runtime and to the API server, the cache of the node's pods,
// Events and metrics.
type node struct {
	config      Config
	api         *kube.Client
	clockOffset func() time.Duration // the API server's clock minus ours
	runtime     *cri.Client
	hooks       *hook.Runner // shared, so that a container stopped by two packages runs its hook once
	version     cri.Version
	containers  *containerEvents
	pods        cache.SharedIndexInformer
	events      *kube.Events
	guard       *guard.Guard // for code that handles one object
	metrics     *metrics
	traces      *tracing.Provider
	readiness   *readiness
	logger      *slog.Logger
}

// newNode waits until the container runtime responds. The caller closes the runtime's connection.
func newNode(ctx context.Context, config Config, conn connection, metrics *metrics, traces *tracing.Provider, readiness *readiness) (*node, error) {
	runtime, version, err := connectRuntime(ctx, config, metrics, traces)
	if err != nil {
		return nil, err
	}
	events := conn.api.Events(component, config.Node, config.Logger)
	guarded := newGuard(metrics.registry, events, config.Logger)
	conn.api.Guard(guarded)
	pods, err := conn.api.Pods(config.Node)
	if err != nil {
		return nil, err
	}
	return &node{
		config: config, api: conn.api, clockOffset: conn.clock.Offset,
		runtime: runtime, hooks: crrnode.NewHooks(runtime), version: version, containers: newContainerEvents(runtime, guarded, config.Logger), pods: pods,
		events: events, guard: guarded,
		metrics: metrics, traces: traces, readiness: readiness, logger: config.Logger,
	}, nil
}

// run runs the shared parts and the packages, until ctx ends or one of them fails.
func (n *node) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { n.events.Run(ctx); return nil })
	group.Go(func() error { n.pods.RunWithContext(ctx); return nil })
	group.Go(func() error { return n.containers.run(ctx) })
	group.Go(func() error { return n.readiness.checkRuntime(ctx, n.runtime) })
	group.Go(func() error { return n.runRequests(ctx) })
	group.Go(func() error { return n.runPodProbes(ctx) })
	group.Go(func() error { return n.runImages(ctx) })
	group.Go(func() error { return n.runContainerMeta(ctx) })
	return group.Wait()
}

// connectRuntime waits for the runtime's socket, which may not exist yet on a starting node, and for a response.
func connectRuntime(ctx context.Context, config Config, metrics *metrics, traces *tracing.Provider) (*cri.Client, cri.Version, error) {
	var endpoint string
	err := wait.Retry(ctx, config.Logger, "find the container runtime", func() (err error) {
		endpoint, err = cri.Discover(config.Socket, config.SocketRoots)
		return err
	})
	if err != nil {
		return nil, cri.Version{}, err
	}
	config.Logger.Info("found the container runtime", "endpoint", endpoint)
	options := cri.Config{Endpoint: endpoint, Logger: config.Logger, OnCall: metrics.criCall}
	if traces.Enabled() {
		options.Stats = otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(traces), otelgrpc.WithMeterProvider(noop.NewMeterProvider()))
	}
	runtime, err := cri.New(options)
	if err != nil {
		return nil, cri.Version{}, err
	}
	var version cri.Version
	err = wait.Retry(ctx, config.Logger, "get the container runtime's version", func() (err error) {
		version, err = runtime.Version(ctx)
		return err
	})
	if err != nil {
		_ = runtime.Close()
		return nil, cri.Version{}, fmt.Errorf("get the container runtime's version: %w", err)
	}
	return runtime, version, nil
}
