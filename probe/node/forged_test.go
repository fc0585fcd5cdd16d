package node_test

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/test/kit/poll"
)

// victim is the ID of an instance of a pod in another namespace.
const victim = "victim-app-1"

// ContainerStatus is the runtime's.
func (w *world) ContainerStatus(_ context.Context, id string) (cri.ContainerStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == victim {
		return cri.ContainerStatus{Container: cri.Container{ID: id, Name: "app", PodNamespace: "bank", PodName: "victim", PodUID: "uid-victim"}}, nil
	}
	for _, pod := range w.pods {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if status.ContainerID == "containerd://"+id {
				return cri.ContainerStatus{Container: cri.Container{
					ID: id, Name: status.Name, PodNamespace: pod.Namespace, PodName: pod.Name, PodUID: string(pod.UID),
				}}, nil
			}
		}
	}
	return cri.ContainerStatus{}, cri.ErrNotFound
}

// forged is a pod with the address of another one in its status.
const forged = "forged"

// SandboxAddresses is the runtime's.
func (w *world) SandboxAddresses(_ context.Context, uid string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range w.pods {
		switch {
		case string(pod.UID) != uid:
		case pod.Name == forged:
			return []netip.Addr{netip.MustParseAddr("192.0.2.66")}, nil
		default:
			return []netip.Addr{netip.MustParseAddr(pod.Status.PodIP)}, nil
		}
	}
	return nil, cri.ErrNotFound
}

// Whoever may write the status of a pod can put any address there: a probe of that address would be sent by the node.
func TestNoProbeIsSentToAnAddressThatIsNotThePods(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int32
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = connection.Close()
		}
	})
	t.Cleanup(func() { _ = listener.Close(); accepting.Wait() })
	w := newWorld(t)
	defer w.close()
	w.putPodWith(forged, 1, func(pod *corev1.Pod) { pod.Status.PodIP = "127.0.0.1" }, "game")
	port := intstr.FromInt(listener.Addr().(*net.TCPAddr).Port)
	w.want(entry(forged, withHandler(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}})))
	w.run()
	poll.Until(t, "two probes to have no result", func() bool {
		for _, metric := range w.allMetrics("refit_probe_results_total") {
			if labels := metric.GetLabel(); labels[0].GetValue() == "none" && metric.GetCounter().GetValue() >= 2 {
				return true
			}
		}
		return reached.Load() > 0
	})
	if n := reached.Load(); n > 0 {
		t.Errorf("%d probes were sent to an address that is not the pod's", n)
	}
}

// Whoever may write the status of a pod can put the ID of a container of another pod there: no command runs in that one.
func TestNoProbeRunsInAContainerOfAnotherPod(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPodWith("a", 1, func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].ContainerID = "containerd://" + victim }, "app")
		w.putPod("b", 1, "app")
		w.want(entry("a", execProbe("p", "app", "cat /secret")), entry("b", execProbe("p", "app", "check")))
		w.run()
		w.pass(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, run := range w.execs {
			if strings.HasPrefix(run, victim) {
				t.Errorf("ran %q", run)
			}
		}
		if len(w.execs) == 0 {
			t.Error("the other pod has not been probed")
		}
	})
}
