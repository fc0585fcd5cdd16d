package kube

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node's daemon records thousands of Events in its life, and must not keep much memory for them.
func TestManyEventsLeaveLittleMemory(t *testing.T) { //nolint:paralleltest // allocations of others would count
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	correlate := newCorrelator()
	before := heap()
	for i := range 4096 {
		now := metav1.NewTime(time.Now())
		about := corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("web-%d", i), UID: "0b1c2d3e-0000-4000-8000-000000000000"}
		_, err := correlate.EventCorrelate(&corev1.Event{
			InvolvedObject: about, Reason: "Killing", Type: corev1.EventTypeNormal, FirstTimestamp: now, LastTimestamp: now, Count: 1,
			Message: fmt.Sprintf("Stopping container app by ContainerRecreateRequest restart-web-%d, requested by system:admin", i),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("%d KiB are kept of 4,096 Events", grown>>10)
	}
	runtime.KeepAlive(correlate)
}
