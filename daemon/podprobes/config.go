package podprobes

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/daemon/podprobes/execprobe"
	"github.com/refit-project/refit/daemon/podprobes/probestatus"
	"github.com/refit-project/refit/probe/turns"
	"github.com/refit-project/refit/result"
)

// Config of a Manager; every field is needed.
type Config struct {
	Node string
	// CPUs of the node: how many commands of exec probes run at the same time at first.
	CPUs int
	// NodePodProbe caches the one object of the node's name, as *v1alpha1.NodePodProbe. Run runs it.
	NodePodProbe cache.SharedIndexInformer
	API          API
	// Pods caches the pods of the node. Somebody else runs it.
	Pods     cache.SharedIndexInformer
	Runtime  execprobe.Runtime
	Events   EventRecorder
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

// API writes the status of the node's NodePodProbe; *kube.NodePodProbes has it.
type API interface {
	WriteStatus(ctx context.Context, object *v1alpha1.NodePodProbe, status v1alpha1.NodePodProbeStatus) (*v1alpha1.NodePodProbe, error)
}

// EventRecorder records Kubernetes Events; *kube.Events has it.
type EventRecorder interface {
	Event(about corev1.ObjectReference, eventType, reason, message string)
}

// New makes a Manager; it works while Run runs.
func New(config Config) (*Manager, error) {
	m := &Manager{
		config: config, metrics: newMetrics(config.Registry), wake: make(chan struct{}, 1),
		stale: map[types.UID]bool{}, ended: map[types.UID]map[string]bool{}, ledger: probestatus.Ledger{}, turns: turns.New(config.CPUs),
		pods: map[types.UID]*podAtWork{}, phase: rand.N(slots[len(slots)-1]), //nolint:gosec // spreads load, keeps no secret
	}
	m.writer = result.NewWriter(result.Config[string]{
		Destination: statusDestination{m}, Logger: config.Logger, Observe: m.metrics.wrote,
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
