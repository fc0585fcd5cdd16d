package inplace_test

import (
	"errors"
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

// A change that is taken back before kubelet acts leaves the instance that runs, which is no reason to wait for another.
func TestImageChangedBackBeforeKubeletSawIt(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), false), false))
	if err := begin(w, 1, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	back := w.pod.DeepCopy()
	back.Spec.Containers[0].Image = "app:1"
	update, err := plan.New(plan.Template(w.pod), plan.Template(back), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.begin(&update); err != nil {
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

// As for a pod that was created a second ago, of which the node's daemon has not reported anything.
func TestInstanceOfASupersededUpdateIsNotThatOfTheNext(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), false), false))
	for _, image := range []string{"app:2", "app:3"} {
		template := w.pod.DeepCopy()
		template.Spec.Containers[0].Image = image
		update, err := plan.New(plan.Template(w.pod), plan.Template(template), plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.begin(&update); err != nil {
			t.Fatal(err)
		}
		if image == "app:2" {
			w.start(&w.pod.Spec.Containers[0]) // and kubelet does not report it before it has seen the next spec
		}
	}
	if _, err := w.next(w.pod.DeepCopy()); err != nil { // writes app:3
		t.Fatal(err)
	}
	w.seen = w.pod.DeepCopy()
	w.report()
	if decision, err := w.next(w.pod); err != nil || decision.Kind != inplace.KindWait {
		t.Errorf("%+v, %v; want to wait for app:3 while an instance of app:2 runs", decision, err)
	}
	// The runtime may show app:2 for an instance of app:3, if both are one image.
	w.now = w.now.Add(time.Hour)
	if decision, err := w.next(w.pod); err != nil || decision.Kind != inplace.KindDone {
		t.Errorf("%+v, %v; want to give up waiting", decision, err)
	}
}

func TestNewUpdateReplacesWhatTheOldOneHasNotBegun(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), false), false))
	if err := begin(w, 1|2, plan.Options{Order: [][]string{{"app"}, {"log"}}}); err != nil {
		t.Fatal(err)
	}
	if err := begin(w, 4, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	w.finish(t)
	if got := w.pod.Spec.Containers[1].Image; got != "log:1" {
		t.Errorf("image of log: %s; the first update had not come to it", got)
	}
}

func TestMalformedRecordIsReportedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), false), false)
	w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":`
	err := begin(w, 1, plan.Options{})
	if !errors.Is(err, record.ErrMalformed) || !strings.Contains(err.Error(), v1beta1.AnnotationInPlaceUpdateState) {
		t.Errorf("%v: want ErrMalformed with the annotation's name", err)
	}
}

func TestPodWithoutUpdateIsPutIntoItsServices(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), true), false)
	for _, want := range []inplace.Kind{inplace.KindStep, inplace.KindDone} {
		if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Kind != want {
			t.Fatalf("%+v, %v; want %s", decision, err, want)
		}
	}
}

// The daemon's report and the pod may be hours apart; a report about another instance decides nothing.
func TestSameImageUnderAnotherNameNeedsTheReportOfTheNode(t *testing.T) {
	t.Parallel()
	pod := newWorld(podOf(plantest.Template(), false), true).pod
	pod.Spec.Containers[0].Image = "app:retagged"
	pod.Status.ContainerStatuses[0].ContainerID = "containerd://another"
	pod.Status.ContainerStatuses[0].Image = "app:retagged"
	kept := &record.Record{State: v1beta1.InPlaceUpdateState{
		UpdateImages: true, UpdateTimestamp: metav1.Unix(1e9, 0),
		LastContainerStatuses: map[string]v1beta1.InPlaceUpdateContainerStatus{"app": {ImageID: pod.Status.ContainerStatuses[0].ImageID}},
	}}
	known, err := reported.Read(pod)
	if err != nil {
		t.Fatal(err)
	}
	if decision := inplace.Next(pod, kept, known, time.Unix(1e9, 0)); decision.Kind != inplace.KindWait {
		t.Errorf("with the report of the instance before: %+v", decision)
	}
	if decision := inplace.Next(pod, kept, nil, time.Unix(1e9, 0)); decision.Kind != inplace.KindDone {
		t.Errorf("without a daemon: %+v", decision)
	}
	pod.Status.ContainerStatuses[0].Image = "app:1"
	if decision := inplace.Next(pod, kept, nil, time.Unix(1e9, 0)); decision.Kind != inplace.KindWait {
		t.Errorf("without a daemon, while kubelet shows the other name: %+v", decision)
	}
}

// kubelet may start a container with an image that has been replaced by the next one, or changed back, meanwhile. It stops that
// container again.
func TestContainerOfAnImageBetweenIsNotTheOneOfTheUpdate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spec, imageID, image string
		want                 inplace.Kind
	}{
		"changed back":                           {"app:1", "example.com/app@sha256:22", "app:2", inplace.KindWait},
		"replaced by the next":                   {"app:3", "example.com/app@sha256:22", "app:2", inplace.KindWait},
		"the next":                               {"app:3", "example.com/app@sha256:33", "docker.io/library/app:3", inplace.KindDone},
		"the next by its digest":                 {digested, "example.com/app@" + digest, "app:3", inplace.KindDone},
		"another digest than that in the update": {digested, "example.com/app@sha256:22", "app:2", inplace.KindWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newWorld(podOf(plantest.Template(), false), true).pod
			known, err := reported.Read(pod) // of the instance before
			if err != nil {
				t.Fatal(err)
			}
			status := &pod.Status.ContainerStatuses[0]
			kept := &record.Record{State: v1beta1.InPlaceUpdateState{
				UpdateImages: true, UpdateTimestamp: metav1.Unix(1e9, 0),
				LastContainerStatuses: map[string]v1beta1.InPlaceUpdateContainerStatus{"app": {ImageID: status.ImageID}},
			}}
			pod.Spec.Containers[0].Image = tt.spec
			status.ContainerID, status.ImageID, status.Image = "containerd://another", tt.imageID, tt.image
			if decision := inplace.Next(pod, kept, known, time.Unix(1e9, 0)); decision.Kind != tt.want {
				t.Errorf("%+v, want %s", decision, tt.want)
			}
			// The daemon reports no instance that does not run: of one that has crashed it has reported nothing.
			others := reported.Containers{"another": known[status.Name]}
			if decision := inplace.Next(pod, kept, others, time.Unix(1e9, 0)); decision.Kind != tt.want {
				t.Errorf("with the report of another container: %+v, want %s", decision, tt.want)
			}
		})
	}
}

const (
	digest   = "sha256:3333333333333333333333333333333333333333333333333333333333333333"
	digested = "example.com/app:3@" + digest
)

func TestImageThatCannotBePulledIsReplacedByTheNext(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), false), false))
	w.pulls["app:2"] = false
	if err := begin(w, 1, plan.Options{}); err != nil {
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
	update, err := plan.New(plan.Template(w.pod), plan.Template(right), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.begin(&update); err != nil {
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
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.com/other", Status: corev1.ConditionFalse})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newWorld(podOf(plantest.Template(), true), false).pod
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
			tt.change(pod)
			decision := inplace.Next(pod, nil, nil, time.Unix(1e9, 0))
			if decision.Step == nil || decision.Step.Kind != inplace.StepMarkReady {
				t.Fatalf("%+v", decision)
			}
			if got := strings.Contains(string(decision.Step.Patch()), `"type":"Ready"`); got != tt.want {
				t.Errorf("%s", decision.Step.Patch())
			}
		})
	}
}

// A new change of a pod that is being updated starts from the state at the end of that update.
func TestWantedHasWhatIsStillToBeWritten(t *testing.T) {
	t.Parallel()
	w := pullable(newWorld(podOf(plantest.Template(), false), false))
	if err := begin(w, 1<<len(changes)-1, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	kept, err := record.Read(w.pod)
	if err != nil {
		t.Fatal(err)
	}
	changed := w.pod.DeepCopy()
	for _, change := range changes {
		change(changed)
	}
	if _, err := plan.New(plan.Template(changed), record.Wanted(w.pod, kept), plan.Options{}); err == nil || !strings.Contains(err.Error(), "nothing is different") {
		t.Errorf("%v: the pod would not be as the update wants it", err)
	}
	w.finish(t)
	if err := w.wanted(1<<len(changes) - 1); err != nil {
		t.Error(err)
	}
}

// Without a daemon nothing names the image: another instance counts when one of the old image would have been stopped.
func TestSameDigestWithoutAReportIsDoneAfterTheGracePeriods(t *testing.T) {
	t.Parallel()
	pod := newWorld(podOf(plantest.Template(), false), false).pod
	pod.Spec.TerminationGracePeriodSeconds = new(int64(5))
	pod.Spec.Containers[0].Image = "app:retagged"
	status := &pod.Status.ContainerStatuses[0]
	written := metav1.Unix(1e9, 0)
	kept := &record.Record{State: v1beta1.InPlaceUpdateState{
		UpdateImages: true, UpdateTimestamp: written,
		LastContainerStatuses:  map[string]v1beta1.InPlaceUpdateContainerStatus{"app": {ImageID: status.ImageID}},
		ContainerBatchesRecord: []v1beta1.InPlaceUpdateContainerBatch{{Timestamp: written, Containers: []string{"app"}}},
		Refit:                  &v1beta1.InPlaceUpdateExtension{Instances: map[string]v1beta1.InPlaceUpdateInstance{"app": {ContainerID: status.ContainerID, Image: "app:1"}}},
	}}
	long := written.Add(time.Hour)
	if decision := inplace.Next(pod, kept, nil, long); decision.Kind != inplace.KindWait || !decision.Again.IsZero() {
		t.Errorf("with the instance before: %+v", decision)
	}
	status.ContainerID = "containerd://another"
	decision := inplace.Next(pod, kept, nil, written.Time)
	// Four containers of 5 s each, and 10 s.
	if decision.Kind != inplace.KindWait || !decision.Again.Equal(written.Add(30*time.Second)) {
		t.Errorf("at once: %+v", decision)
	}
	if decision := inplace.Next(pod, kept, nil, decision.Again); decision.Kind != inplace.KindDone {
		t.Errorf("later: %+v", decision)
	}
	stale := reported.Containers{"app": {Name: "app", ContainerID: "containerd://1"}}
	if decision := inplace.Next(pod, kept, stale, long); decision.Kind != inplace.KindWait {
		t.Errorf("while the daemon's report is late: %+v", decision)
	}
}
