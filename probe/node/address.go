package node

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/probe"
)

// addressed probes the address in the status of a pod only if the runtime says that it is the pod's: whoever may write the
// status can put any address there, which the node may reach and its writer may not. It is used by one goroutine at a time.
type addressed struct {
	probe.Prober
	address  netip.Addr
	host     bool // the pod is in the host network, where the runtime knows no address
	of       func(context.Context) ([]netip.Addr, error)
	log      *slog.Logger
	checked  bool
	reported bool
}

// addressed returns a prober that checks the address first. Exec probes do not need it.
func (m *Manager) addressed(prober probe.Prober, pod *corev1.Pod, ip string) (probe.Prober, error) {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return nil, err
	}
	uid := kubelet.RuntimePodUID(pod)
	return &addressed{
		Prober: prober, address: address, host: pod.Spec.HostNetwork,
		of:  func(ctx context.Context) ([]netip.Addr, error) { return m.config.Runtime.SandboxAddresses(ctx, uid) },
		log: m.config.Logger.With("pod", pod.Namespace+"/"+pod.Name),
	}, nil
}

// Close closes the wrapped prober.
func (a *addressed) Close() error {
	probe.Close(a.Prober)
	return nil
}

// Probe implements probe.Prober. Without the address of the pod there is no result: kubelet may report another one soon.
func (a *addressed) Probe(ctx context.Context) probe.Outcome {
	if !a.checked {
		known, err := a.of(ctx)
		if err != nil {
			return probe.Outcome{}
		}
		a.checked = slices.Contains(known, a.address) || a.host && len(known) == 0
		if !a.checked {
			a.report(known)
			return probe.Outcome{}
		}
	}
	return a.Prober.Probe(ctx)
}

func (a *addressed) report(known []netip.Addr) {
	if !a.reported {
		a.reported = true
		a.log.Warn("not probed: the address in the status of the pod is not the pod's", "address", a.address, "addresses", known)
	}
}
