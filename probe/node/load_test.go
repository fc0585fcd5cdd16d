package node_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
)

func (w *world) metric(name string) *dto.Metric {
	w.t.Helper()
	return w.metrics(name)[0]
}

// metrics are all of one name, of which there is at least one.
func (w *world) metrics(name string) []*dto.Metric {
	w.t.Helper()
	all := w.allMetrics(name)
	if len(all) == 0 {
		w.t.Fatalf("no metric %s", name)
	}
	return all
}

func (w *world) allMetrics(name string) []*dto.Metric {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	return nil
}

// A thousand probes each second keep their times beside a server that never answers; whether a machine keeps up is
// for test/bench/probe.
func TestThousandProbesArePunctual(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var entries []v1alpha1.PodProbe
		for i := range 100 {
			name := fmt.Sprintf("p%02d", i)
			w.putPod(name, 1, "game")
			e := entry(name)
			for j := range 10 {
				e.Probes = append(e.Probes, execProbe(fmt.Sprintf("m#%d", j), "game", "check"))
			}
			entries = append(entries, e)
		}
		w.want(entries...)
		w.run()
		w.pass(30 * time.Second)
		_, before, _ := w.count()
		writes, _, _ := w.count()
		w.pass(10 * time.Second)
		after, execs, _ := w.count()
		if n := execs - before; n < 9_990 || n > 10_010 {
			t.Errorf("%d probes in 10 s, want 10,000", n)
		}
		if after != writes {
			t.Errorf("%d writes with nothing changing", after-writes)
		}
		late := w.metric("refit_probe_lateness_seconds").GetHistogram()
		for _, b := range late.GetBucket() {
			if b.GetUpperBound() == 0.1 && b.GetCumulativeCount() < late.GetSampleCount()*99/100 {
				t.Errorf("%d of %d within 100 ms", b.GetCumulativeCount(), late.GetSampleCount())
			}
		}
		if running := w.metric("refit_probes").GetGauge().GetValue(); running != 1000 {
			t.Errorf("refit_probes %v", running)
		}
		w.want()
		w.pass(time.Second)
		if running := w.metric("refit_probes").GetGauge().GetValue(); running != 0 {
			t.Errorf("refit_probes %v after their removal", running)
		}
	})
}

// The engines meet the pod at its own address, over a real network.
func TestNetworkProbesGoToThePod(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { fmt.Fprint(out, "from ", r.URL.Path) }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.putPodWith("a", 1, func(pod *corev1.Pod) {
		pod.Status.PodIP = "127.0.0.1"
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(number)}}
	}, "game")
	get := httpGet(func(g *corev1.HTTPGetAction) { g.Path, g.Port = "here", intstr.FromString("web") })
	get.Name = "m#http"
	connect := withHandler(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(number))}})
	connect.Name = "m#tcp"
	elsewhere := entry("a", get, connect)
	elsewhere.IP = "192.0.2.1" // which is not believed
	w.want(elsewhere)
	w.run()
	defer w.close()
	deadline := time.After(20 * time.Second)
	for len(w.shows()) != 2 || w.shows()[0] != "a m#http Succeeded from /here" || w.shows()[1] != "a m#tcp Succeeded connected" {
		select {
		case <-deadline:
			t.Fatalf("status %q, events %q", w.shows(), w.events)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
