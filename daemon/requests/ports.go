package daemon

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
)

// Runtime is what the daemon needs of the node's container runtime; *cri.Client has it.
type Runtime interface {
	Version(ctx context.Context) (cri.Version, error)
	ListContainers(ctx context.Context, podUID string) ([]cri.Container, error)
	ContainerStatus(ctx context.Context, id string) (cri.ContainerStatus, error)
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
	SandboxIP(ctx context.Context, podUID string) (string, error)
	Events(ctx context.Context, fn func(cri.Event)) error
}

// PodAPI reads pods past the cache and touches them; *kube.Client has it.
type PodAPI interface {
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Annotate(ctx context.Context, pod *corev1.Pod, key, value string) error
}

// RequestAPI writes the status of requests; *kube.Requests has it.
type RequestAPI interface {
	WriteStatus(ctx context.Context, request *crr.Request, status crr.Status) (*v1beta1.ContainerRecreateRequest, error)
	KeepsConditions() bool
}

// Teller passes on Kubernetes Events; *kube.Events has it.
type Teller interface {
	Event(about corev1.ObjectReference, eventType, reason, message string)
}
