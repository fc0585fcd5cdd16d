package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/node/report"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/hook"
)

// Config configures a Worker. Every field is required.
type Config struct {
	Node        string
	RuntimeName string // the scheme of container IDs, for example "containerd"
	Runtime     Runtime
	// Hooks runs preStop hooks. Other code that stops containers on the node shares it; see NewHooks.
	Hooks *hook.Runner
	// Requests caches the active requests of the node, as *v1beta1.ContainerRecreateRequest. Worker.Run runs the informer.
	Requests   cache.SharedIndexInformer
	RequestAPI RequestAPI
	// Pods caches the pods of the node. The caller runs the informer.
	Pods   cache.SharedIndexInformer
	PodAPI PodAPI
	// ClockOffset returns the API server's clock minus the local clock.
	ClockOffset func() time.Duration
	Options     crr.Options
	// MaxConcurrent limits the actions in progress.
	MaxConcurrent int
	// Synced is called once, after the caches are filled.
	Synced   func()
	Events   report.EventRecorder
	Registry prometheus.Registerer
	Guard    *guard.Guard // catches panics while one pod is handled
	Tracer   trace.Tracer
	Logger   *slog.Logger
}

// Runtime is the node's container runtime; *cri.Client implements it.
type Runtime interface {
	ListContainers(ctx context.Context, podUID string) ([]cri.Container, error)
	ContainerStatus(ctx context.Context, id string) (cri.ContainerStatus, error)
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
	SandboxIP(ctx context.Context, podUID string) (string, error)
}

// PodAPI reads and annotates pods through the API server; *kube.Client implements it.
type PodAPI interface {
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Annotate(ctx context.Context, pod *corev1.Pod, key, value string) error
}

// RequestAPI writes requests and returns them as stored. A write fails if the request has changed since it was read.
// *kube.Requests implements it.
type RequestAPI interface {
	WriteStatus(ctx context.Context, request *crr.Request, status crr.Status) (*v1beta1.ContainerRecreateRequest, error)
	Annotate(ctx context.Context, request *crr.Request, key, value string) (*v1beta1.ContainerRecreateRequest, error)
	KeepsConditions() bool
}
