package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kube"
)

const (
	// component signs our Events and requests.
	component = "refit-daemon"
	// connectDelay is between looks for what is not there yet at start: socket, API server, CRDs.
	connectDelay = time.Second
	// mutationTTL is how long our own write stands in for a watch that lags behind.
	mutationTTL = 5 * time.Minute
)

// Run is the daemon. It returns when ctx ends, after its goroutines have, or when it cannot be started at all.
// A runtime or API server that is not there is waited for.
func Run(ctx context.Context, config Config) error {
	if err := config.Validate(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	restConfig, err := kube.Config(config.Kubeconfig, component+"/"+config.Version)
	if err != nil {
		return err
	}
	var clock kube.Clock
	restConfig.Wrap(clock.Wrap)
	api, err := kube.NewClient(restConfig)
	if err != nil {
		return err
	}
	metrics := newMetrics(config.Version)
	ready := &readiness{}
	group, ctx := errgroup.WithContext(ctx)
	if err := serve(ctx, group, config, metrics, ready, api); err != nil {
		return err
	}
	group.Go(func() error {
		runtime, err := connectRuntime(ctx, config, metrics)
		if err != nil {
			return err
		}
		defer runtime.Close() //nolint:errcheck // nothing is lost by it
		return work(ctx, config, api, runtime, metrics, ready, clock.Offset)
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// connectRuntime waits for the runtime's socket. It is not an error of ours that a node has none yet.
func connectRuntime(ctx context.Context, config Config, metrics *metrics) (*cri.Client, error) {
	var endpoint string
	err := untilDone(ctx, config.Logger, "looking for the container runtime", func() (err error) {
		endpoint, err = cri.Discover(config.Socket, config.SocketRoots)
		return err
	})
	if err != nil {
		return nil, err
	}
	config.Logger.Info("found the container runtime", "endpoint", endpoint)
	return cri.New(cri.Config{Endpoint: endpoint, Logger: config.Logger, OnCall: metrics.criCall})
}

// work starts what needs a runtime and an API server, as soon as there are both.
func work(ctx context.Context, config Config, api *kube.Client, runtime Runtime, metrics *metrics, ready *readiness, offset func() time.Duration) error {
	var version cri.Version
	var requestAPI *kube.Requests
	err := untilDone(ctx, config.Logger, "asking the container runtime for its version", func() (err error) {
		version, err = runtime.Version(ctx)
		return err
	})
	if err != nil {
		return err
	}
	err = untilDone(ctx, config.Logger, "asking the API server for ContainerRecreateRequests", func() (err error) {
		requestAPI, err = api.Requests(ctx)
		return err
	})
	if err != nil {
		return err
	}
	requests, err := requestAPI.Informer(config.Node)
	if err != nil {
		return err
	}
	if err := requests.AddIndexers(cache.Indexers{indexPod: indexByPod}); err != nil {
		return fmt.Errorf("index requests: %w", err)
	}
	pods, err := api.Pods(config.Node)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	events := api.Events(component, config.Node, config.Logger)
	group.Go(func() error { events.Run(ctx); return nil })
	w := newWorker(config, group, requests.GetIndexer(), pods.GetStore())
	w.runtime, w.runtimeName, w.podAPI, w.requestAPI = runtime, version.RuntimeName, api, requestAPI
	w.events, w.metrics, w.clockOffset = events, metrics, offset
	if w.prober, err = w.newProber(metrics.probes, pods); err != nil {
		return err
	}
	for _, informer := range []cache.SharedIndexInformer{requests, pods} {
		if err := w.follow(informer); err != nil {
			return err
		}
		group.Go(func() error { informer.RunWithContext(ctx); return nil })
	}
	if !cache.WaitForCacheSync(ctx.Done(), requests.HasSynced, pods.HasSynced) {
		return group.Wait()
	}
	ready.synced()
	config.Logger.Info("ready", "node", config.Node, "runtime", version.RuntimeName, "runtimeVersion", version.RuntimeVersion)
	group.Go(func() error { return w.watchRuntime(ctx) })
	w.noteWork() // the start is over
	group.Go(func() error { return releaseMemory(ctx, w.worked, w.release) })
	group.Go(func() error { return ready.probe(ctx, runtime) })
	group.Go(func() error { return w.run(ctx) })
	group.Go(func() error { return w.runProbes(ctx, api, w.prober) })
	return group.Wait()
}

func newWorker(config Config, group *errgroup.Group, requests cache.Indexer, pods cache.Store) *worker {
	return &worker{
		node: config.Node, options: crr.Options{RespectBackoff: config.RespectBackoff},
		pods: pods, requests: requests,
		newest: cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), requests,
			cache.MutationCacheOptions{Indexer: requests, TTL: mutationTTL, MaxCacheSize: 4096}),
		acts: newActs(), slots: make(chan struct{}, config.MaxConcurrent), worked: make(chan struct{}, 1), group: group,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[identity.Pod](
			10*time.Millisecond, 5*time.Second)),
		hooks: newHookClient(), logger: config.Logger,
	}
}

// untilDone repeats what needs something that may come later, and says so now and then.
func untilDone(ctx context.Context, logger *slog.Logger, doing string, try func() error) error {
	const quiet = time.Minute
	var said time.Time
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Since(said) > quiet && ctx.Err() == nil {
			logger.Warn(doing+": waiting", "err", err)
			said = time.Now()
		}
		if err := pause(ctx, connectDelay); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
