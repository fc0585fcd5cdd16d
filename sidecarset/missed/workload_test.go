package missed_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// Otherwise pods would be evicted to be injected while others of their workload do not serve.
func TestPodsThatDoNotServeAreNotCountedAsReady(t *testing.T) {
	t.Parallel()
	fleet := rollout.NewFleet(nil)
	for name, pod := range map[string]rollout.Pod{
		"serves":        {Ready: true, ReadySince: start},
		"is not ready":  {},
		"is in flight":  {Ready: true, ReadySince: start, InFlight: true},
		"others update": {Ready: true, ReadySince: start, UID: "beside"},
	} {
		pod.Key, pod.Workload, pod.State = types.NamespacedName{Namespace: "shop", Name: name}, "a", rollout.Updated
		fleet.Set(pod)
	}
	pods := map[types.NamespacedName]missed.Pod{
		key("a", 0): {Workload: "a", Ready: true},
		key("a", 1): {Workload: "a", Ready: true, UnderWay: true},
		key("a", 2): {Workload: "a", Ready: true, UID: "begun"}, // it does not show it yet
		key("b", 0): {Workload: "b", Ready: true},
	}
	others := map[types.UID]time.Time{"beside": start.Add(time.Minute), "begun": start.Add(time.Minute)}
	got := missed.Workloads(maps.All(pods), fleet, others, start)("a")
	if diff := cmp.Diff(missed.Workload{Pods: 7, Ready: 2, UnderWay: 4}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
