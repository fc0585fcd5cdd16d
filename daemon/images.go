package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/refit-project/refit/image/credentialprovider"
	imagenode "github.com/refit-project/refit/image/node"
	"github.com/refit-project/refit/internal/kube"
	"github.com/refit-project/refit/internal/wait"
)

// imagesDelay is the time between checks for NodeImages while the API server does not serve them, which may be intended.
const imagesDelay = 30 * time.Second

// runImages pulls the images of the node's NodeImage as soon as the API server serves NodeImages.
func (n *node) runImages(ctx context.Context) error {
	api, err := n.awaitNodeImages(ctx)
	if err != nil {
		return err
	}
	informer, err := api.Informer(n.config.Node)
	if err != nil {
		return err
	}
	plugins, err := n.plugins()
	if err != nil {
		return err
	}
	controller, err := imagenode.New(imagenode.Config{
		Node: n.config.Node, NodeImage: informer, API: api, Secrets: n.api, SecretNamespace: n.config.PullSecretNamespace, Plugins: plugins,
		Runtime: n.runtime, Parallel: n.config.MaxPulls, Events: n.events, Guard: n.guard, Registry: n.metrics.registry, Logger: n.logger,
	})
	if err != nil {
		return err
	}
	return controller.Run(ctx)
}

// awaitNodeImages waits until NodeImages are served. Its only error is the context's.
func (n *node) awaitNodeImages(ctx context.Context) (*kube.NodeImages, error) {
	for logged := false; ; {
		api, err := n.api.NodeImages(ctx)
		if err == nil {
			return api, nil
		}
		delay := wait.RetryDelay
		if errors.Is(err, kube.ErrNodeImagesNotServed) {
			delay = imagesDelay
		}
		if !logged && ctx.Err() == nil {
			n.logger.Info("no images are pulled yet", "err", err)
			logged = true
		}
		if err := wait.For(ctx, delay); err != nil {
			return nil, err
		}
	}
}

// plugins returns the configured credential providers. A missing file is not an error: kruise-daemon's manifest names a
// file that may not exist.
func (n *node) plugins() (imagenode.Plugins, error) {
	if n.config.PluginConfig == "" {
		return nil, nil
	}
	plugins, err := credentialprovider.New(n.config.PluginConfig, n.config.PluginFolder)
	if errors.Is(err, credentialprovider.ErrNoConfig) {
		n.logger.Warn("images are pulled without credential providers", "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return plugins, nil
}
