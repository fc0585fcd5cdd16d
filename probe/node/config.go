package node

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/probe/node/execprobe"
	"github.com/refit-project/refit/probe/node/probestatus"
	"github.com/refit-project/refit/probe/turns"
)

// Config configures a Manager. Every field is required.
type Config struct {
	Node string
	// CPUs is the number of CPUs of the node: the initial limit of concurrently running commands of exec probes.
	CPUs int
	// ExecShare is the share of the CPUs that the runtime may use for exec probes, above 0.
	ExecShare float64
	// NodePodProbe caches the object with the node's name, as *v1alpha1.NodePodProbe. Manager.Run runs the informer.
	NodePodProbe cache.SharedIndexInformer
	API          API
	// Pods caches the pods of the node. The caller runs the informer.
	Pods     cache.SharedIndexInformer
	Runtime  Runtime
	Events   EventRecorder
	Registry prometheus.Registerer
	Guard    *guard.Guard // catches panics while one pod is handled, and in probes
	Logger   *slog.Logger
}

// Runtime runs commands in containers and knows the addresses of pods; *cri.Client implements it.
type Runtime interface {
	execprobe.Runtime
	SandboxAddresses(ctx context.Context, podUID string) ([]netip.Addr, error)
}

// API writes the status of the node's NodePodProbe; *kube.NodePodProbes implements it.
type API interface {
	WriteStatus(ctx context.Context, object *v1alpha1.NodePodProbe, status v1alpha1.NodePodProbeStatus) (*v1alpha1.NodePodProbe, error)
}

// EventRecorder records Kubernetes Events; *kube.Events implements it.
type EventRecorder interface {
	Event(about corev1.ObjectReference, eventType, reason, message string)
}

// New returns a Manager. It works while Run runs.
func New(config Config) (*Manager, error) {
	m := &Manager{
		config: config, metrics: newMetrics(config.Registry), wake: make(chan struct{}, 1),
		stale: map[types.UID]bool{}, ended: map[types.UID]map[string]bool{}, ledger: probestatus.Ledger{}, turns: turns.New(config.CPUs, config.ExecShare),
		pods: map[types.UID]*podAtWork{}, phase: rand.N(slots[len(slots)-1]), //nolint:gosec // spreads load, keeps no secret
	}
	m.writer = result.NewWriter(result.Config[string]{
		Destination: statusDestination{m}, Guard: config.Guard, Logger: config.Logger, Observe: m.metrics.wrote,
		Pace: result.Pace{Settle: settle, FirstRetry: firstRetry, LastRetry: lastRetry},
	})
	m.metrics.watch(config.Registry, m.turns)
	m.slot.Store(int64(slotFor(0)))
	if _, err := follow(config.Pods, func(pod *corev1.Pod, _ bool) { m.podChanged(pod.UID) }); err != nil {
		return nil, fmt.Errorf("follow pods: %w", err)
	}
	synced, err := follow(config.NodePodProbe, func(object *v1alpha1.NodePodProbe, deleted bool) {
		if deleted {
			object = nil
		}
		m.objectChanged(object)
	})
	if err != nil {
		return nil, fmt.Errorf("follow the NodePodProbe: %w", err)
	}
	m.synced = synced
	return m, nil
}
