package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/image/credentialprovider"
	"github.com/refit-project/refit/image/queue"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/result"
)

// Config configures a Controller. Every field except Plugins is required.
type Config struct {
	Node string
	// NodeImage caches the object with the node's name, as *v1beta1.NodeImage. Controller.Run runs the informer.
	NodeImage cache.SharedIndexInformer
	API       API
	Secrets   Secrets
	// SecretNamespace is the only namespace from which pull secrets are read.
	SecretNamespace string
	// Plugins are used for credentials after the pull secrets; nil if there are none.
	Plugins Plugins
	Runtime Runtime
	// Parallel is the maximum number of concurrent pulls.
	Parallel int
	Events   EventRecorder
	Registry prometheus.Registerer
	Guard    *guard.Guard // catches panics while one image is handled
	Logger   *slog.Logger
}

// API writes the status of the node's NodeImage; *kube.NodeImages implements it.
type API interface {
	WriteStatus(ctx context.Context, object *v1beta1.NodeImage, before []string, status v1beta1.NodeImageStatus) error
}

// Secrets reads one Secret; *kube.Client implements it.
type Secrets interface {
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Plugins returns credentials by image; *credentialprovider.Plugins implements it.
type Plugins interface {
	Logins(ctx context.Context, image string) ([]credentialprovider.Login, error)
}

// Runtime pulls images; *cri.Client implements it.
type Runtime interface {
	ImageID(ctx context.Context, image string) (string, error)
	PullImage(ctx context.Context, request cri.PullRequest) (string, error)
	MeterPull(registry, repository, digest string, since time.Time) func(context.Context) (cri.Progress, error)
}

// EventRecorder records Kubernetes Events; *kube.Events implements it.
type EventRecorder interface {
	Event(about corev1.ObjectReference, eventType, reason, message string)
}

const (
	// writeSettle is how long a write waits for further changes: a pull that ends in that time, as of an image that the node has, is
	// written once.
	writeSettle = 750 * time.Millisecond
	// writeInterval is the minimum time between two writes of the status.
	writeInterval = time.Second
	// endSettle and endInterval replace them at the end of a pull, because jobs, and updates that pull before they stop
	// containers, wait for it.
	endSettle   = 20 * time.Millisecond
	endInterval = 100 * time.Millisecond
	// writeFinal limits the last write when the daemon ends.
	writeFinal = 2 * time.Second
)

// New returns a Controller. It works while Run runs.
func New(config Config) (*Controller, error) {
	c := &Controller{config: config, metrics: newMetrics(config.Registry), wake: make(chan struct{}, 1)}
	c.writer = result.NewWriter(result.Config[string]{
		Destination: c, Guard: config.Guard, Pace: result.Pace{Settle: writeSettle, Interval: writeInterval, Yield: true, Final: writeFinal}, Logger: config.Logger,
	})
	handle := func(object any) {
		is, _ := object.(*v1beta1.NodeImage)
		c.objectChanged(is)
	}
	handler, err := config.NodeImage.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }, DeleteFunc: func(any) { c.objectChanged(nil) },
	})
	if err != nil {
		return nil, fmt.Errorf("follow the NodeImage: %w", err)
	}
	c.synced = handler.HasSynced
	return c, nil
}

var _ queue.Puller = puller{}
