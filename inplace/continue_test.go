package inplace_test

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
)

// finish simulates a node without errors until the update is done.
func (w *world) finish(t *testing.T) {
	t.Helper()
	for range 60 {
		w.now = w.now.Add(time.Second)
		w.see()
		w.act()
		w.report()
		w.publish()
		w.enforce()
		decision, err := w.next(w.pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if decision.Kind == inplace.KindDone {
			if err := w.truth(); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("never done; annotations %v, conditions %+v", w.pod.Annotations, w.pod.Status.Conditions)
}

func pullable(w *world) *world {
	for _, image := range []string{"app:1", "log:1", "mesh:1", "app:2", "log:2", "mesh:2"} {
		w.pulls[image] = true
	}
	return w
}

// The texts are of the form that OpenKruise 1.9 writes.
func TestContinuesWhatOpenKruiseHasBegun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		annotations map[string]string
		begun       func(*corev1.Pod)
		want        []string // images at the end
	}{
		"a batch that is under way, and another": {
			annotations: map[string]string{v1beta1.AnnotationInPlaceUpdateState: `{"revision":"web-7d","updateTimestamp":"2001-09-09T01:46:40Z",
				"lastContainerStatuses":{"app":{"imageID":"sha256:app:1"}},"updateImages":true,"nextContainerImages":{"log":"log:2"},
				"preCheckBeforeNext":{"containersRequiredReady":["app"]},
				"containerBatchesRecord":[{"timestamp":"2001-09-09T01:46:40Z","containers":["app"]}]}`},
			begun: func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "app:2"; pod.Generation++ },
			want:  []string{"app:2", "log:2"},
		},
		"a pod that is drained": {
			annotations: map[string]string{
				v1beta1.AnnotationInPlaceUpdateState: `{"revision":"web-7d","updateTimestamp":"2001-09-09T01:46:40Z","lastContainerStatuses":null}`,
				v1beta1.AnnotationInPlaceUpdateGrace: `{"revision":"web-7d","containerImages":{"app":"app:2"},"metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsicGxhaW4iOiJ4In19fQ==","graceSeconds":10}`,
			},
			want: []string{"app:2", "log:1"},
		},
		"the keys of an old version": {
			annotations: map[string]string{
				v1beta1.LegacyAnnotationInPlaceUpdateState: `{"revision":"web-7d","updateTimestamp":"2001-09-09T01:46:40Z","lastContainerStatuses":{"app":{"imageID":"sha256:app:1"}}}`,
			},
			begun: func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "app:2"; pod.Generation++ },
			want:  []string{"app:2", "log:1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pullable(newWorld(podOf(plantest.Template(), true), false))
			for key, value := range tt.annotations {
				w.pod.Annotations[key] = value
			}
			w.pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse}}
			if tt.begun != nil {
				tt.begun(w.pod)
			}
			w.stored()
			w.finish(t)
			if got := []string{w.pod.Spec.Containers[0].Image, w.pod.Spec.Containers[1].Image}; got[0] != tt.want[0] || got[1] != tt.want[1] {
				t.Errorf("images %q, want %q", got, tt.want)
			}
			if _, ok := tt.annotations[v1beta1.AnnotationInPlaceUpdateGrace]; ok && w.pod.Labels["plain"] != "x" {
				t.Error("the metadata patch was not applied")
			}
			if c := conditionOf(w.pod, v1beta1.ReadinessGateInPlaceUpdateReady); c.Status != corev1.ConditionTrue {
				t.Error("the pod is still out of its Services")
			}
		})
	}
}

// OpenKruise reads these fields of what we write: that a batch is pending, and what the begun ones ran before.
func TestRecordIsReadableByOpenKruise(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), false), false))
	if err := begin(w, 3|64, plan.Options{Revision: "web-7d", Order: [][]string{{"app"}, {"log"}}}); err != nil {
		t.Fatal(err)
	}
	read := func() (state struct {
		Revision              string
		LastContainerStatuses map[string]struct{ ImageID string }
		NextContainerImages   map[string]string
		PreCheckBeforeNext    struct{ ContainersRequiredReady []string }
	},
	) {
		if err := json.Unmarshal([]byte(w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState]), &state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	if state := read(); state.Revision != "web-7d" || state.LastContainerStatuses != nil || len(state.NextContainerImages) != 2 {
		t.Errorf("at the beginning: %+v", state)
	}
	for w.pod.Spec.Containers[0].Image == "app:1" {
		w.see()
		w.act()
		w.report()
		if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Kind == inplace.KindDone {
			t.Fatalf("%+v, %v", decision, err)
		}
	}
	state := read()
	if state.LastContainerStatuses["app"].ImageID != "sha256:app:1" || state.NextContainerImages["log"] != "log:2" ||
		len(state.PreCheckBeforeNext.ContainersRequiredReady) != 1 {
		t.Errorf("in the first batch: %+v", state)
	}
	w.finish(t)
	if state := read(); len(state.NextContainerImages) > 0 {
		t.Errorf("at the end: %+v", state)
	}
}

func TestDrainLastsAsLongAsAskedFor(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), true), false))
	w.now = w.now.Add(900 * time.Millisecond)
	if err := begin(w, 1, plan.Options{DrainSeconds: 5}); err != nil {
		t.Fatal(err)
	}
	if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Step == nil || decision.Step.Kind != inplace.StepDrain {
		t.Fatalf("%+v, %v", decision, err)
	}
	drained := w.now
	decision, err := w.next(w.pod.DeepCopy())
	defer func() {
		w.finish(t)
		if c := conditionOf(w.pod, v1beta1.ReadinessGateInPlaceUpdateReady); c.Reason != "" || c.Message != "" {
			t.Errorf("at the end: %+v", c)
		}
	}()
	if err != nil || decision.Kind != inplace.KindWait || decision.Again.Sub(drained) < 5*time.Second {
		t.Fatalf("%+v, %v: want a wait of 5 s", decision, err)
	}
	if c := conditionOf(w.pod, v1beta1.ReadinessGateInPlaceUpdateReady); c.Reason != v1beta1.ReasonStartInPlaceUpdate {
		t.Errorf("while it drains: %+v", c)
	}
	w.now = decision.Again
	if decision, err = w.next(w.pod.DeepCopy()); err != nil || decision.Step == nil || decision.Step.Kind != inplace.StepWrite {
		t.Errorf("%+v, %v: want the image", decision, err)
	}
}
