package inplace_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
)

// finish plays a well-behaved node until the update is done.
func (w *world) finish(t *testing.T) {
	t.Helper()
	for range 60 {
		w.now = w.now.Add(time.Second)
		w.see()
		w.act()
		w.report()
		w.publish()
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
	t.Fatalf("never done; annotations %v", w.pod.Annotations)
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
			w := pullable(newWorld(podOf(template(), true), false))
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
	w := pullable(newWorld(podOf(template(), false), false))
	if err := begin(w, 3|64, inplace.Options{Revision: "web-7d", Order: [][]string{{"app"}, {"log"}}}); err != nil {
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
	w := pullable(newWorld(podOf(template(), true), false))
	w.now = w.now.Add(900 * time.Millisecond)
	if err := begin(w, 1, inplace.Options{DrainSeconds: 5}); err != nil {
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

// A change that is taken back before kubelet acts leaves the instance that runs, which is no reason to wait for another.
func TestImageChangedBackBeforeKubeletSawIt(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(template(), false), false))
	if err := begin(w, 1, inplace.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.next(w.pod.DeepCopy()); err != nil { // writes app:2
		t.Fatal(err)
	}
	back := w.pod.DeepCopy()
	back.Spec.Containers[0].Image = "app:1"
	update, err := inplace.Plan(inplace.Template(w.pod), inplace.Template(back), inplace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	step, err := inplace.Start(w.pod, &update, w.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inplace.Apply(context.Background(), w, w.pod, step); err != nil {
		t.Fatal(err)
	}
	if _, err := w.next(w.pod.DeepCopy()); err != nil { // writes app:1
		t.Fatal(err)
	}
	w.finish(t)
	if w.stopped["app"] > 0 {
		t.Error("the container was stopped")
	}
}

func TestNewUpdateReplacesWhatTheOldOneHasNotBegun(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(template(), false), false))
	if err := begin(w, 1|2, inplace.Options{Order: [][]string{{"app"}, {"log"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.next(w.pod.DeepCopy()); err != nil { // writes app:2
		t.Fatal(err)
	}
	if err := begin(w, 4, inplace.Options{}); err != nil {
		t.Fatal(err)
	}
	w.finish(t)
	if got := w.pod.Spec.Containers[1].Image; got != "log:1" {
		t.Errorf("image of log: %s; the first update had not come to it", got)
	}
}

func TestMalformedRecordIsToldAndNothingWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(template(), false), false)
	w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":`
	err := begin(w, 1, inplace.Options{})
	if !errors.Is(err, inplace.ErrMalformed) || !strings.Contains(err.Error(), v1beta1.AnnotationInPlaceUpdateState) {
		t.Errorf("%v: want ErrMalformed with the annotation's name", err)
	}
}

func TestPodWithoutUpdateIsPutIntoItsServices(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(template(), true), false)
	for _, want := range []inplace.Kind{inplace.KindStep, inplace.KindDone} {
		if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Kind != want {
			t.Fatalf("%+v, %v; want %s", decision, err, want)
		}
	}
}

// The daemon's record and the pod's may be hours apart; facts about another instance decide nothing.
func TestSameImageUnderAnotherNameNeedsTheNodesFacts(t *testing.T) {
	t.Parallel()
	pod := newWorld(podOf(template(), false), true).pod
	pod.Spec.Containers[0].Image = "app:retagged"
	pod.Status.ContainerStatuses[0].ContainerID = "containerd://another"
	pod.Status.ContainerStatuses[0].Image = "app:retagged"
	record := &inplace.Record{State: v1beta1.InPlaceUpdateState{
		UpdateImages: true, UpdateTimestamp: metav1.Unix(1e9, 0),
		LastContainerStatuses: map[string]v1beta1.InPlaceUpdateContainerStatus{"app": {ImageID: pod.Status.ContainerStatuses[0].ImageID}},
	}}
	facts, err := inplace.ReadFacts(pod)
	if err != nil {
		t.Fatal(err)
	}
	if decision := inplace.Next(pod, record, facts, time.Unix(1e9, 0)); decision.Kind != inplace.KindWait {
		t.Errorf("with facts of the instance before: %+v", decision)
	}
	if decision := inplace.Next(pod, record, nil, time.Unix(1e9, 0)); decision.Kind != inplace.KindDone {
		t.Errorf("without a daemon: %+v", decision)
	}
	pod.Status.ContainerStatuses[0].Image = "app:1"
	if decision := inplace.Next(pod, record, nil, time.Unix(1e9, 0)); decision.Kind != inplace.KindWait {
		t.Errorf("without a daemon, while kubelet shows the other name: %+v", decision)
	}
}

func TestImageThatCannotBePulledIsReplacedByTheNext(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(template(), false), false))
	w.pulls["app:2"] = false
	if err := begin(w, 1, inplace.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.next(w.pod.DeepCopy()); err != nil { // writes app:2
		t.Fatal(err)
	}
	w.see()
	w.act()
	w.report()
	if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Reason != "ImagePullBackOff" {
		t.Fatalf("%+v, %v", decision, err)
	}
	right := w.pod.DeepCopy()
	right.Spec.Containers[0].Image = "log:2"
	update, err := inplace.Plan(inplace.Template(w.pod), inplace.Template(right), inplace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	step, err := inplace.Start(w.pod, &update, w.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inplace.Apply(context.Background(), w, w.pod, step); err != nil {
		t.Fatal(err)
	}
	w.finish(t)
}

func TestReadyIsWrittenWithTheGateOnlyIfNothingElseIsInItsWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"all is ready":           {func(*corev1.Pod) {}, true},
		"a container is not":     {func(pod *corev1.Pod) { pod.Status.ContainerStatuses[1].Ready = false }, false},
		"kubelet says it is not": {func(pod *corev1.Pod) { pod.Status.Conditions = nil }, false},
		"another gate is closed": {func(pod *corev1.Pod) {
			pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: "example.com/other"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newWorld(podOf(template(), true), false).pod
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
			tt.change(pod)
			decision := inplace.Next(pod, nil, nil, time.Unix(1e9, 0))
			if decision.Step == nil || decision.Step.Kind != inplace.StepMarkReady {
				t.Fatalf("%+v", decision)
			}
			if got := strings.Contains(string(decision.Step.Patch), `"type":"Ready"`); got != tt.want {
				t.Errorf("%s", decision.Step.Patch)
			}
		})
	}
}

// Whoever wants something else of a pod that is being updated begins from what it is going to be.
func TestWantedHasWhatIsStillToBeWritten(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(template(), false), false))
	if err := begin(w, 1<<len(changes)-1, inplace.Options{}); err != nil {
		t.Fatal(err)
	}
	record, err := inplace.ReadRecord(w.pod)
	if err != nil {
		t.Fatal(err)
	}
	changed := w.pod.DeepCopy()
	for _, change := range changes {
		change(changed)
	}
	if _, err := inplace.Plan(inplace.Template(changed), inplace.Wanted(w.pod, record), inplace.Options{}); err == nil || !strings.Contains(err.Error(), "nothing is different") {
		t.Errorf("%v: the pod would not be as the update wants it", err)
	}
	w.finish(t)
	if err := w.wanted(1<<len(changes) - 1); err != nil {
		t.Error(err)
	}
}
