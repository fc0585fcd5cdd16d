package callers

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func numbered(i int) (*corev1.Pod, netip.Addr) {
	address := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i)}}
	pod.Status.PodIP = address.String()
	return pod, address
}

// Tenants decide how many pods are deleted, and how many addresses call.
func TestAddressesThatNobodyHasAreBounded(t *testing.T) {
	t.Parallel()
	p := newPods(nil)
	for i := range maxKept + 100 {
		pod, address := numbered(i)
		p.set(pod)
		p.remove(pod)
		if !p.find(address).pod {
			t.Fatalf("the address of pod %d is dropped at once", i)
		}
	}
	if len(p.claims) > maxKept || len(p.kept) > maxKept {
		t.Errorf("%d addresses of deleted pods are kept, in %d places", len(p.claims), len(p.kept))
	}
	regular := netip.MustParseAddr("172.16.0.1")
	p.newcomers[regular] = &newcomer{claimed: make(chan struct{})} // has called before
	for i := range maxNewcomers + 100 {
		_, address := numbered(1<<20 + i)
		p.find(address)
		if found := p.find(regular); found.wait > 0 {
			t.Fatalf("after %d other addresses a regular caller waits again", i)
		}
	}
	if len(p.newcomers) > maxNewcomers {
		t.Errorf("%d addresses without pods are kept", len(p.newcomers))
	}
}

// BenchmarkPods prints what the address of a pod takes in the heap, in bytes, without the names, which the cache has too.
func BenchmarkPods(b *testing.B) {
	const n = 10_000
	all := make([]*corev1.Pod, n)
	for i := range all {
		all[i], _ = numbered(i)
	}
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		p := newPods(nil)
		for _, pod := range all {
			p.set(pod)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(p)
	}
	b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/n, "B/pod")
	runtime.KeepAlive(all)
}
