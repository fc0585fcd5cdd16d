package control

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/podprobe"
)

// foreignMarkers is a cluster with 300 markers of 100 probes each, none of which is for the pods of the node.
func foreignMarkers() []client.Object {
	objects := []client.Object{testNode(), gameMarker("own")}
	for i := range 300 {
		m := gameMarker(fmt.Sprintf("m%03d", i))
		m.Namespace, m.Spec.Selector.MatchLabels["app"] = fmt.Sprintf("ns%02d", i%30), "other"
		one := m.Spec.Probes[0]
		m.Spec.Probes = nil
		for j := range v1alpha1.MaxProbesOfMarker {
			one.Name, one.PodConditionType = fmt.Sprint("p", j), fmt.Sprint("example.com/p", j)
			m.Spec.Probes = append(m.Spec.Probes, one)
		}
		objects = append(objects, m)
	}
	for i := range 50 {
		objects = append(objects, gamePod(fmt.Sprintf("p%02d", i)))
	}
	return objects
}

// What a node reconcile costs beside the reading of the cache, which the fake client does by way of JSON.
func BenchmarkNodeSpecWithForeignMarkers(b *testing.B) {
	r := &nodeReconciler{api: newAPIServer(b, foreignMarkers()...).api}
	var list v1alpha1.PodProbeMarkerList
	if err := r.client.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	pods, err := r.listPods(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	r.compiled.Compile(list.Items, true) // once, at the start of the manager
	for b.Loop() {
		markers := r.compiled.Compile(list.Items, true)
		if spec, _ := podprobe.NodeSpec(pods, markers, nil); len(spec.PodProbes) != 50 {
			b.Fatal(len(spec.PodProbes))
		}
	}
	if took := b.Elapsed() / time.Duration(b.N); took > 5*time.Millisecond {
		b.Errorf("%s for a node with 50 pods and 300 foreign markers of 100 probes, want less than 5 ms", took)
	}
}
