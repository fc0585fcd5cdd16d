package images

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/credentialprovider"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/result"
)

// Config of a Controller; every field but Plugins is needed.
type Config struct {
	Node string
	// NodeImage caches the one object of the node's name, as *v1beta1.NodeImage. Run runs it.
	NodeImage cache.SharedIndexInformer
	API       API
	Secrets   Secrets
	// SecretNamespace is the only one from which pull secrets are read.
	SecretNamespace string
	// Plugins are asked for credentials after the pull secrets; nil: there are none.
	Plugins Plugins
	Runtime Runtime
	// Parallel pulls at most.
	Parallel int
	Events   EventRecorder
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

// API writes the status of the node's NodeImage; *kube.NodeImages has it.
type API interface {
	WriteStatus(ctx context.Context, object *v1beta1.NodeImage, before []string, status v1beta1.NodeImageStatus) error
}

// Secrets reads one Secret; *kube.Client has it.
type Secrets interface {
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Plugins know credentials by image; *credentialprovider.Plugins has it.
type Plugins interface {
	Logins(ctx context.Context, image string) ([]credentialprovider.Login, error)
}

// Runtime pulls images; *cri.Client has it.
type Runtime interface {
	ImageID(ctx context.Context, image string) (string, error)
	PullImage(ctx context.Context, request cri.PullRequest) (string, error)
	MeterPull(registry, repository, digest string, since time.Time) func(context.Context) (cri.Progress, error)
}

// EventRecorder records Kubernetes Events; *kube.Events has it.
type EventRecorder interface {
	Event(about corev1.ObjectReference, eventType, reason, message string)
}

const (
	// writeSettle is how long a change waits for others, so that they become one write.
	writeSettle = 200 * time.Millisecond
	// writeInterval is the least time between two writes of the status.
	writeInterval = time.Second
	// endSettle and endInterval are the same for the end of a pull: jobs, and updates that pull before they stop, wait for it.
	endSettle   = 20 * time.Millisecond
	endInterval = 100 * time.Millisecond
	// writeFinal is how long the last write may take when the daemon ends.
	writeFinal = 2 * time.Second
)

// New makes a Controller; it works while Run runs.
func New(config Config) (*Controller, error) {
	c := &Controller{config: config, metrics: newMetrics(config.Registry), wake: make(chan struct{}, 1)}
	c.writer = result.NewWriter(result.Config[string]{
		Destination: c, Pace: result.Pace{Settle: writeSettle, Interval: writeInterval, Final: writeFinal}, Logger: config.Logger,
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

var _ image.Puller = puller{}
