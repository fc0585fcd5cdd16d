package inplace_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
)

// controller is a workload controller of OpenKruise, as far as it reads and writes the pod of the world. It knows nothing of
// Refit's part of the record, and drops it.
type controller struct{ *world }

// state is the record as OpenKruise reads it.
func (k controller) state() (*v1beta1.InPlaceUpdateState, bool) {
	text, ok := k.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState]
	if !ok {
		return nil, false
	}
	state := &v1beta1.InPlaceUpdateState{}
	if err := json.Unmarshal([]byte(text), state); err != nil {
		panic(err)
	}
	state.Refit = nil
	return state, true
}

// refresh is what it does about a pod each time it looks at it: nothing, the next batch, or the end of the update.
func (k controller) refresh() {
	state, ok := k.state()
	switch {
	case ok && !k.completed(state):
	case ok && len(state.NextContainerImages)+len(state.NextContainerRefMetadata) > 0:
		if check := state.PreCheckBeforeNext; check == nil || k.allReady(check.ContainersRequiredReady) {
			k.next(state)
		}
	default:
		conditionOf(k.pod, v1beta1.ReadinessGateInPlaceUpdateReady).Status = corev1.ConditionTrue
		k.stored()
	}
}

// completed is the documented predicate, in its order: environment, kubelet's hash, then image IDs.
func (k controller) completed(state *v1beta1.InPlaceUpdateState) bool {
	known := must(reported.Read(k.pod))
	sameHash := true
	for i := range k.pod.Spec.Containers {
		spec := &k.pod.Spec.Containers[i]
		hashes, ok := known.Of(k.status(spec.Name))
		if state.UpdateEnvFromMetadata && (!ok || hashes.ExtractedEnvFromMetadataHash != reported.ExpectedEnvHash(spec, k.pod)) {
			return false
		}
		sameHash = sameHash && ok && reported.SameHash(hashes, spec)
	}
	if sameHash {
		return true
	}
	for name, was := range state.LastContainerStatuses {
		if status := k.status(name); status.ImageID == was.ImageID && status.Image != plan.Find(&k.pod.Spec, name).Image {
			return false
		}
	}
	return true
}

func (k controller) status(name string) *corev1.ContainerStatus {
	for i := range k.pod.Status.ContainerStatuses {
		if k.pod.Status.ContainerStatuses[i].Name == name {
			return &k.pod.Status.ContainerStatuses[i]
		}
	}
	return &corev1.ContainerStatus{}
}

func (k controller) allReady(names []string) bool {
	for _, name := range names {
		if !k.status(name).Ready {
			return false
		}
	}
	return true
}

// next writes all that is left, as containers without launch priorities are one batch.
func (k controller) next(state *v1beta1.InPlaceUpdateState) {
	batch := v1beta1.InPlaceUpdateContainerBatch{Timestamp: metav1.NewTime(k.now)}
	for i := range k.pod.Spec.Containers {
		spec := &k.pod.Spec.Containers[i]
		image, metadata := state.NextContainerImages[spec.Name], state.NextContainerRefMetadata[spec.Name]
		if image != "" {
			spec.Image = image
			state.UpdateImages = true
			if state.LastContainerStatuses == nil {
				state.LastContainerStatuses = map[string]v1beta1.InPlaceUpdateContainerStatus{}
			}
			state.LastContainerStatuses[spec.Name] = v1beta1.InPlaceUpdateContainerStatus{ImageID: k.status(spec.Name).ImageID}
		}
		for key, value := range metadata.Labels {
			k.pod.Labels[key] = value
		}
		for key, value := range metadata.Annotations {
			k.pod.Annotations[key] = value
		}
		if image != "" || len(metadata.Labels)+len(metadata.Annotations) > 0 {
			batch.Containers = append(batch.Containers, spec.Name)
		}
	}
	state.ContainerBatchesRecord = append(state.ContainerBatchesRecord, batch)
	state.NextContainerImages, state.NextContainerRefMetadata, state.PreCheckBeforeNext = nil, nil, nil
	k.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = string(must(json.Marshal(state)))
	k.pod.Generation++
	k.stored()
}

// takeTurns has Refit begin an update and then whoever the seed says look at the pod, until nothing is left to do.
func takeTurns(seed uint64, bits int) error {
	random := rand.New(rand.NewPCG(seed, 2))
	w := pullable(newWorld(podOf(plantest.Template(), true), true))
	w.pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionTrue}}
	if err := begin(w, bits, plan.Options{Order: [][]string{{"app"}, {"log"}}}); err != nil {
		return err
	}
	k := controller{w}
	for range 200 {
		w.now = w.now.Add(500 * time.Millisecond)
		for _, node := range []func(){w.see, w.act, w.report, w.publish, w.enforce} {
			if random.IntN(2) == 0 {
				node()
			}
		}
		// Whoever updates takes the pod out of its Services first.
		if c := conditionOf(w.pod, v1beta1.ReadinessGateInPlaceUpdateReady); c.Status == corev1.ConditionFalse && random.IntN(2) == 0 {
			k.refresh()
			continue
		}
		decision, err := w.next(w.pod.DeepCopy())
		if err != nil {
			return err
		}
		if decision.Kind == inplace.KindDone {
			if len(w.rules) > 0 {
				return fmt.Errorf("%s", strings.Join(w.rules, "; "))
			}
			if err := w.wanted(bits); err != nil {
				return err
			}
			return w.truth()
		}
	}
	return fmt.Errorf("never ends: %v, conditions %+v", w.pod.Annotations, w.pod.Status.Conditions)
}

// Images and environments, of one container or both. Each turn may be the last of the one or the other.
func TestRefitAndOpenKruiseContinueEachOther(t *testing.T) {
	t.Parallel()
	seeds := uint64(40)
	if testing.Short() {
		seeds = 3
	}
	for _, bits := range []int{1, 2, 3, 8, 9, 11, 16, 17, 19, 24, 27} {
		for seed := range seeds {
			if err := takeTurns(seed, bits); err != nil {
				t.Fatalf("changes %b, seed %d: %v", bits, seed, err)
			}
		}
	}
}

// The states that a workload of OpenKruise leaves on a pod when its controller ends in the middle, as OpenKruise 1.9 writes
// them: field names, order and the metadata of an ObjectMeta are its own.
func TestContinuesEveryStateOfAWorkloadOfOpenKruise(t *testing.T) {
	t.Parallel()
	const head = `{"revision":"web-7d","updateTimestamp":"2001-09-09T01:46:40Z",`
	const batch = `"containerBatchesRecord":[{"timestamp":"2001-09-09T01:46:40Z","containers":["app"]}]}`
	for name, tt := range map[string]struct {
		state, grace string
		begun        func(*corev1.Pod)
		bits         int // of changes: what the pod is like at the end
		stops        int
	}{
		"image written": {
			state: head + `"lastContainerStatuses":{"app":{"imageID":"sha256:app:1"}},"updateImages":true,` + batch,
			begun: changes[0], bits: 1, stops: 1,
		},
		"environment written": {
			state: head + `"lastContainerStatuses":null,"updateEnvFromMetadata":true,` + batch,
			begun: changes[4], bits: 16, stops: 1,
		},
		"image and environment written": {
			state: head + `"lastContainerStatuses":{"app":{"imageID":"sha256:app:1"}},"updateEnvFromMetadata":true,"updateImages":true,` + batch,
			begun: func(pod *corev1.Pod) { changes[0](pod); changes[4](pod) }, bits: 17, stops: 1,
		},
		"first batch written, image and environment of the next": {
			state: head + `"lastContainerStatuses":{"log":{"imageID":"sha256:log:1"}},"updateImages":true,"nextContainerImages":{"app":"app:2"},` +
				`"nextContainerRefMetadata":{"app":{"creationTimestamp":null,"labels":{"tier":"db"}}},"preCheckBeforeNext":{"containersRequiredReady":["log"]},` +
				`"containerBatchesRecord":[{"timestamp":"2001-09-09T01:46:40Z","containers":["log"]}]}`,
			begun: changes[1], bits: 19, stops: 2,
		},
		"first batch written, resources of the next": {
			state: head + `"lastContainerStatuses":{"log":{"imageID":"sha256:log:1"}},"updateImages":true,"updateResources":true,` +
				`"nextContainerResources":{"app":{"requests":{"cpu":"200m"}}},"preCheckBeforeNext":{"containersRequiredReady":["log"]},` +
				`"containerBatchesRecord":[{"timestamp":"2001-09-09T01:46:40Z","containers":["log"]}]}`,
			begun: changes[1], bits: 66, stops: 1,
		},
		"resources written": {
			state: head + `"lastContainerStatuses":null,"updateResources":true,` + batch,
			begun: changes[6], bits: 64,
		},
		"draining, image and environment": {
			state: head + `"lastContainerStatuses":null}`,
			grace: `{"revision":"web-7d","containerImages":{"app":"app:2"},"containerRefMetadata":{"app":{"creationTimestamp":null,"labels":{"tier":"db"}}},` +
				`"updateEnvFromMetadata":true,"graceSeconds":5,"oldTemplate":{"metadata":{"creationTimestamp":null},"spec":{"containers":null}}}`,
			bits: 17, stops: 1,
		},
		"draining, resources": {
			state: head + `"lastContainerStatuses":null}`,
			grace: `{"revision":"web-7d","containerResources":{"app":{"requests":{"cpu":"200m"}}},"graceSeconds":5}`, bits: 64,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pullable(newWorld(podOf(plantest.Template(), true), true))
			w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = tt.state
			if tt.grace != "" {
				w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateGrace] = tt.grace
			}
			w.pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse}}
			if tt.begun != nil {
				tt.begun(w.pod)
				w.pod.Generation++
			}
			w.stored()
			w.finish(t)
			if err := w.wanted(tt.bits); err != nil {
				t.Error(err)
			}
			stops := 0
			for _, n := range w.stopped {
				stops += n
			}
			if stops != tt.stops {
				t.Errorf("%d stops, want %d: %v", stops, tt.stops, w.stopped)
			}
			if c := conditionOf(w.pod, v1beta1.ReadinessGateInPlaceUpdateReady); c.Status != corev1.ConditionTrue {
				t.Error("the pod is still out of its Services")
			}
		})
	}
}

// A user's change of a pod that OpenKruise drains comes on top of what is to be written then, and does not cut the drain short.
func TestChangeOfAPodThatOpenKruiseDrainsKeepsWhatIsPending(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), true), true))
	w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"web-7d","updateTimestamp":"2001-09-09T01:46:40Z","lastContainerStatuses":null}`
	w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateGrace] = `{"revision":"web-7d","containerRefMetadata":{"app":{"labels":{"tier":"db"}}},` +
		`"metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsicGxhaW4iOiJ4In19fQ==","updateEnvFromMetadata":true,"graceSeconds":30}`
	w.pod.Status.Conditions = []corev1.PodCondition{{
		Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.now),
	}}
	w.stored()
	drained := w.now
	recorded := must(record.Read(w.pod))
	wanted := record.Wanted(w.pod, recorded)
	wanted.Spec.Containers[0].Image = "app:2"
	update := must(plan.New(plan.Template(w.pod), wanted, plan.Options{}))
	if err := w.begin(&update); err != nil {
		t.Fatal(err)
	}
	for w.pod.Spec.Containers[0].Image == "app:1" {
		w.now = w.now.Add(time.Second)
		if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Kind == inplace.KindDone {
			t.Fatalf("%+v, %v", decision, err)
		}
	}
	if took := w.now.Sub(drained); took < 30*time.Second {
		t.Errorf("written after %s, want 30 s", took)
	}
	w.finish(t)
	if err := w.wanted(1 | 16 | 32); err != nil {
		t.Error(err)
	}
}
