package daemon

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/internal/freememory"
	"github.com/refit-project/refit/internal/kube"
	"github.com/refit-project/refit/internal/kube/serverclock"
	"github.com/refit-project/refit/internal/tracing"
)

// component is the source of the daemon's Events and its user agent.
const component = "refit-daemon"

// connection is the connection to the API server. Nothing has been sent when it is created.
type connection struct {
	api   *kube.Client
	clock *serverclock.Clock
}

func connect(config Config) (connection, error) {
	restConfig, err := kube.Config(config.Kubeconfig, component+"/"+config.Version)
	if err != nil {
		return connection{}, err
	}
	var clock serverclock.Clock
	restConfig.Wrap(clock.Wrap)
	api, err := kube.NewClient(restConfig)
	return connection{api: api, clock: &clock}, err
}

// Run runs the daemon. It returns when ctx has ended and its goroutines have ended, or when it cannot be started. It waits
// for a runtime or API server that is not available.
func Run(ctx context.Context, config Config) error {
	if err := config.Validate(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	tuneRuntime()
	conn, err := connect(config)
	if err != nil {
		return err
	}
	traces, err := tracing.New(ctx, config.Tracing, component, config.Version)
	if err != nil {
		return err
	}
	metrics := newMetrics(config.Version)
	readiness := &readiness{}
	group, ctx := errgroup.WithContext(ctx)
	endpoints := endpoints{config: config, readiness: readiness, metrics: metrics.registry, tokens: conn.api}
	if err := endpoints.serve(ctx, group); err != nil {
		return err
	}
	group.Go(func() error { return freememory.AfterBursts(ctx) })
	group.Go(func() error { return traces.Run(ctx) })
	group.Go(func() error {
		node, err := newNode(ctx, config, conn, metrics, traces, readiness)
		if err != nil {
			return err
		}
		defer node.runtime.Close() //nolint:errcheck // nothing is lost by it
		return node.run(ctx)
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
