package requests

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
	"github.com/refit-project/refit/daemon/requests/report"
	"github.com/refit-project/refit/hook"
)

// Config of a Worker; every field is needed.
type Config struct {
	Node        string
	RuntimeName string // the scheme of container IDs, as "containerd"
	Runtime     Runtime
	// Hooks runs preStop hooks, also for others who stop containers of the node; see NewHooks.
	Hooks *hook.Runner
	// Requests caches the active requests of the node, as *v1beta1.ContainerRecreateRequest. Run runs it.
	Requests   cache.SharedIndexInformer
	RequestAPI RequestAPI
	// Pods caches the pods of the node. Somebody else runs it.
	Pods   cache.SharedIndexInformer
	PodAPI PodAPI
	// ClockOffset is the API server's clock minus ours.
	ClockOffset func() time.Duration
	Options     crr.Options
	// MaxConcurrent bounds the acts under way at once.
	MaxConcurrent int
	// Synced is called once, when the caches are filled.
	Synced   func()
	Events   report.EventRecorder
	Registry prometheus.Registerer
	Tracer   trace.Tracer
	Logger   *slog.Logger
}

// Runtime is the node's container runtime; *cri.Client has it.
type Runtime interface {
	ListContainers(ctx context.Context, podUID string) ([]cri.Container, error)
	ContainerStatus(ctx context.Context, id string) (cri.ContainerStatus, error)
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
	SandboxIP(ctx context.Context, podUID string) (string, error)
}

// PodAPI reads pods from the API server and annotates them; *kube.Client has it.
type PodAPI interface {
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Annotate(ctx context.Context, pod *corev1.Pod, key, value string) error
}

// RequestAPI writes requests, provided that nobody has since they were read, and returns them as stored; *kube.Requests
// has it.
type RequestAPI interface {
	WriteStatus(ctx context.Context, request *crr.Request, status crr.Status) (*v1beta1.ContainerRecreateRequest, error)
	Annotate(ctx context.Context, request *crr.Request, key, value string) (*v1beta1.ContainerRecreateRequest, error)
	KeepsConditions() bool
}
