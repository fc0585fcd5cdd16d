package workload_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout/workload"
)

// remembered is what a world keeps between decisions, as the controller does.
type remembered struct {
	memory   workload.Memory
	spec     string
	contents map[types.UID]string
}

// next decides with what is kept from the decision before. All tests of the package check by it that the decision is the same
// without, and with pods as the cache of the manager has them.
func (w *world) next(observed workload.Observation) workload.Decision {
	w.t.Helper()
	if spec := w.json(w.policy.Spec) + fmt.Sprint(w.policy.DeletionTimestamp); spec != w.kept.spec { // tests do not count generations
		w.kept = remembered{spec: spec, contents: map[types.UID]string{}}
	}
	for _, pod := range observed.Pods {
		version := pod.ResourceVersion
		pod.ResourceVersion = ""
		content := w.json(pod)
		if pod.ResourceVersion = version; w.kept.contents[pod.UID] != content {
			w.version++
			pod.ResourceVersion = strconv.Itoa(w.version)
			w.kept.contents[pod.UID] = content
		}
	}
	plain := workload.Next(w.policy, observed, w.now)
	w.compare("with cached pods", workload.Next(w.policy, w.cached(observed), w.now), plain)
	observed.Memory = &w.kept.memory
	decision := workload.Next(w.policy, observed, w.now)
	w.compare("with what is kept", decision, plain)
	return decision
}

// cached returns an observation with pods as the cache has them, or all pods as they are if one is too large.
func (w *world) cached(observed workload.Observation) workload.Observation {
	w.t.Helper()
	pods := make([]*corev1.Pod, len(observed.Pods))
	for i, pod := range observed.Pods {
		if pods[i] = cached(pod); !workload.Comparable(pods[i]) {
			return observed
		}
	}
	observed.Pods = pods
	return observed
}

func (w *world) compare(what string, decision, plain workload.Decision) {
	w.t.Helper()
	if !apiequality.Semantic.DeepEqual(plain.Status, decision.Status) {
		w.t.Fatalf("%s the status is\n%+v\nand without\n%+v", what, decision.Status, plain.Status)
	}
	if got, want := summary(&decision), summary(&plain); got != want || plain.Again.IsZero() != decision.Again.IsZero() {
		w.t.Fatalf("%s: %s, again %s; without: %s, again %s", what, got, decision.Again, want, plain.Again)
	}
}

func (w *world) json(v any) string {
	w.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func summary(d *workload.Decision) (text string) {
	for _, a := range d.Actions {
		text += string(a.Kind) + " "
		if a.Pod != nil {
			text += a.Pod.Name + " " + a.Label
		}
		text += "; "
	}
	return text
}

// A pod that is ready long enough is available, and one that does not become available in time has failed, without any change of
// the pod.
func TestTimeAloneChangesTheStateOfAPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 2)
	w.policy.Spec.MinReadySeconds = new(int32(30))
	w.rounds(40)
	if w.policy.Status.UnavailablePods != 0 {
		t.Fatalf("%d pods are unavailable", w.policy.Status.UnavailablePods)
	}
	w.edit(image("app:2"))
	w.rounds(20)
	if w.policy.Status.UnavailablePods != 1 || w.images()["app:2"] != 1 {
		t.Fatalf("%d pods are unavailable before the first is ready for long enough, images %v", w.policy.Status.UnavailablePods, w.images())
	}
	w.rounds(60)
	if w.images()["app:2"] != 2 {
		t.Errorf("images %v", w.images())
	}
}

func BenchmarkNextWithManyPods(b *testing.B) {
	for _, n := range []int32{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(&testing.T{}, "Deployment", n)
			w.rounds(2)
			target := w.target()
			var pods []*corev1.Pod
			for _, pod := range w.pods {
				pods = append(pods, pod)
			}
			memory := &workload.Memory{}
			version := 1000000
			for b.Loop() {
				version++
				pods[0].ResourceVersion = strconv.Itoa(version) // one has changed
				w.last = workload.Next(w.policy, workload.Observation{Workload: target, Pods: pods, Memory: memory}, w.now)
			}
			if !kubelet.Ready(pods[0]) || int(w.last.Status.MatchedPods) != len(pods) {
				b.Fatalf("%d pods", w.last.Status.MatchedPods)
			}
		})
	}
}
