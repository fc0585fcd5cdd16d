package record_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func cpu(quantity string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}}
}

func labels(value string) v1beta1.InPlaceUpdateMetadata {
	return v1beta1.InPlaceUpdateMetadata{Labels: map[string]string{"tier": value}}
}

func annotations(value string) v1beta1.InPlaceUpdateMetadata {
	return v1beta1.InPlaceUpdateMetadata{Annotations: map[string]string{"config": value}}
}

// running is a pod with the containers app and log, and the native sidecar mesh, each with an instance.
func running() *corev1.Pod {
	pod := podWith(map[string]string{"config": "one", "gone": "x"})
	pod.Labels = map[string]string{"tier": "web"}
	pod.Spec.InitContainers = []corev1.Container{{Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1", Resources: cpu("100m")}, {Name: "log", Image: "log:1"}}
	status := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, ContainerID: "c://" + name, ImageID: "sha256:" + name}
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{status("mesh")}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status("app"), status("log")}
	return pod
}

// copyOf a record, as it is after it was written to the pod and read again.
func copyOf(t *testing.T, r *record.Record) *record.Record {
	t.Helper()
	text, err := json.Marshal(r.State)
	if err != nil {
		t.Fatal(err)
	}
	out := &record.Record{SidecarSet: r.SidecarSet, Grace: r.Grace}
	if err := json.Unmarshal(text, &out.State); err != nil {
		t.Fatal(err)
	}
	return out
}

// unready is what is known of a pod that is not ready when its update is begun.
var unready = &v1beta1.InPlaceUpdateUnready{Since: metav1.NewTime(now.Add(-time.Hour)), Stuck: true}

func begun(changes ...plan.Change) *record.Record {
	r := &record.Record{State: v1beta1.InPlaceUpdateState{Refit: &v1beta1.InPlaceUpdateExtension{}}}
	r.Begin(&plan.Update{
		Options: plan.Options{Revision: "r", Order: [][]string{{"log"}, {"app"}}, DrainSeconds: 5, Unready: unready},
		Changes: plan.Changes{Containers: changes, Labels: map[string]*string{"team": new("shop")}, Annotations: map[string]*string{"gone": nil}},
	}, now)
	return r
}

// The fields are OpenKruise's: an update that Refit has begun can be continued there.
func TestRecordOfAnUpdateThatBegins(t *testing.T) {
	t.Parallel()
	resources := cpu("200m")
	got := begun(plan.Change{Container: "app", Image: "app:2", Resources: &resources}, plan.Change{Container: "log", Metadata: labels("db")})
	want := v1beta1.InPlaceUpdateState{
		Revision: "r", UpdateTimestamp: metav1.NewTime(now), UpdateImages: true, UpdateResources: true, UpdateEnvFromMetadata: true,
		NextContainerImages:      map[string]string{"app": "app:2"},
		NextContainerResources:   map[string]corev1.ResourceRequirements{"app": resources},
		NextContainerRefMetadata: map[string]v1beta1.InPlaceUpdateMetadata{"log": labels("db")},
		Refit: &v1beta1.InPlaceUpdateExtension{
			Order: [][]string{{"log"}, {"app"}}, DrainSeconds: 5, Labels: map[string]*string{"team": new("shop")}, Annotations: map[string]*string{"gone": nil}, Unready: unready,
		},
	}
	if diff := cmp.Diff(want, got.State); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := begun(plan.Change{Container: "app", Image: "app:2"}).State; got.UpdateResources || got.UpdateEnvFromMetadata || got.NextContainerResources != nil {
		t.Errorf("an image alone: %+v", got)
	}
}

// A record must say what the containers ran before: later nothing else tells whether an instance is of the new image.
func TestRecordAfterAStageWasWritten(t *testing.T) {
	t.Parallel()
	resources := cpu("200m")
	before := begun(plan.Change{Container: "app", Image: "app:2", Resources: &resources}, plan.Change{Container: "log", Metadata: labels("db")})
	before.State.PreCheckBeforeNext = &v1beta1.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: []string{"mesh"}}
	later := now.Add(time.Minute)
	image := &plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "app", Image: "app:2"}}}
	restart := &plan.Stage{Kind: plan.StageRestart, Changes: []plan.Change{{Container: "log", Metadata: labels("db")}}}
	for name, tt := range map[string]struct {
		stage *plan.Stage
		want  func(*v1beta1.InPlaceUpdateState)
	}{
		"resources": {&plan.Stage{Kind: plan.StageResize}, func(s *v1beta1.InPlaceUpdateState) { s.NextContainerResources = nil }},
		"metadata":  {&plan.Stage{Kind: plan.StageMetadata}, func(s *v1beta1.InPlaceUpdateState) { s.Refit.Labels, s.Refit.Annotations = nil, nil }},
		"an image, and more follows": {image, func(s *v1beta1.InPlaceUpdateState) {
			s.NextContainerImages = map[string]string{}
			s.LastContainerStatuses = map[string]v1beta1.InPlaceUpdateContainerStatus{"app": {ImageID: "sha256:app"}}
			s.ContainerBatchesRecord = []v1beta1.InPlaceUpdateContainerBatch{{Timestamp: metav1.NewTime(later), Containers: []string{"app"}}}
			s.PreCheckBeforeNext = &v1beta1.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: []string{"app"}}
			s.Refit.After = map[string][]string{"log": {"app"}}
			s.Refit.Instances = map[string]v1beta1.InPlaceUpdateInstance{"app": {ContainerID: "c://app", Image: "app:1"}}
			s.Refit.Written = &metav1.MicroTime{Time: later}
		}},
		"a restart, and more follows": {restart, func(s *v1beta1.InPlaceUpdateState) {
			s.NextContainerRefMetadata = map[string]v1beta1.InPlaceUpdateMetadata{}
			s.ContainerBatchesRecord = []v1beta1.InPlaceUpdateContainerBatch{{Timestamp: metav1.NewTime(later), Containers: []string{"log"}}}
			s.PreCheckBeforeNext = &v1beta1.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: []string{"log"}}
			s.Refit.After = map[string][]string{"app": {"log"}}
			s.Refit.Instances = map[string]v1beta1.InPlaceUpdateInstance{"log": {ContainerID: "c://log", Image: "log:1"}}
			s.Refit.Written = &metav1.MicroTime{Time: later}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := copyOf(t, before)
			want := copyOf(t, before).State
			tt.want(&want)
			pod := running()
			pod.Status.InitContainerStatuses[0].Ready = true
			got := from.Written(pod, tt.stage, later)
			if diff := cmp.Diff(want, got.State); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(copyOf(t, before), from); diff != "" {
				t.Errorf("the record before was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestSecondStageKeepsWhatTheFirstHasRecorded(t *testing.T) {
	t.Parallel()
	pod := running()
	kept := begun(plan.Change{Container: "mesh", Image: "mesh:2"}, plan.Change{Container: "app", Image: "app:2"})
	first := kept.Written(pod, &plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "mesh", Image: "mesh:2"}}}, now)
	snapshot := copyOf(t, first)
	second := first.Written(pod, &plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "app", Image: "app:2"}}}, now)
	if diff := cmp.Diff(snapshot.State, copyOf(t, first).State); diff != "" {
		t.Errorf("the first record was changed (-before +after):\n%s", diff)
	}
	last := map[string]v1beta1.InPlaceUpdateContainerStatus{"app": {ImageID: "sha256:app"}, "mesh": {ImageID: "sha256:mesh"}}
	if diff := cmp.Diff(last, second.State.LastContainerStatuses); diff != "" || len(second.State.ContainerBatchesRecord) != 2 || len(second.Extension().Instances) != 2 {
		t.Errorf("%+v\n%s", second.State, diff)
	}
	if first.Pending() != true || second.Pending() {
		t.Errorf("pending after the first stage: %t, after the last: %t", first.Pending(), second.Pending())
	}
}

// An instance that an earlier update was to replace is still one of the image from before that.
func TestInstanceThatWasNotReplacedKeepsItsImageInTheRecord(t *testing.T) {
	t.Parallel()
	stage := &plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "app", Image: "app:3"}}}
	for name, tt := range map[string]struct {
		recorded v1beta1.InPlaceUpdateInstance
		want     string
	}{
		"the same instance": {v1beta1.InPlaceUpdateInstance{ContainerID: "c://app", Image: "app:0"}, "app:0"},
		"another instance":  {v1beta1.InPlaceUpdateInstance{ContainerID: "c://before", Image: "app:0"}, "app:1"},
	} {
		kept := begun(plan.Change{Container: "app", Image: "app:3"})
		kept.State.Refit.Instances = map[string]v1beta1.InPlaceUpdateInstance{"app": tt.recorded}
		got := kept.Written(running(), stage, now).Extension().Instances["app"]
		if got.Image != tt.want || got.ContainerID != "c://app" {
			t.Errorf("%s: %+v, want image %s", name, got, tt.want)
		}
	}
}

// Instances of images that were in the spec for a moment are not instances of the update, for however many updates.
func TestImagesThatWereSupersededAreRecorded(t *testing.T) {
	t.Parallel()
	pod := running()
	kept := begun()
	for i := range 7 {
		pod.Spec.Containers[0].Image = fmt.Sprintf("app:%d", i)
		kept = kept.Written(pod, &plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "app", Image: fmt.Sprintf("app:%d", i+1)}}}, now)
	}
	want := v1beta1.InPlaceUpdateInstance{ContainerID: "c://app", Image: "app:0", Superseded: []string{"app:3", "app:4", "app:5", "app:6"}}
	if diff := cmp.Diff(want, kept.Extension().Instances["app"]); diff != "" {
		t.Errorf("of one instance (-want +got):\n%s", diff)
	}
	pod.Status.ContainerStatuses[0].ContainerID, pod.Spec.Containers[0].Image = "c://next", "app:7"
	kept = kept.Written(pod, &plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "app", Image: "app:8"}}}, now)
	want = v1beta1.InPlaceUpdateInstance{ContainerID: "c://next", Image: "app:7", Superseded: []string{"app:7"}}
	if diff := cmp.Diff(want, kept.Extension().Instances["app"]); diff != "" {
		t.Errorf("of the next (-want +got):\n%s", diff)
	}
}

func TestImageOfAContainerThatIsOnlyRestartedIsNotSuperseded(t *testing.T) {
	t.Parallel()
	kept, stage := begun(), &plan.Stage{Kind: plan.StageRestart, Changes: []plan.Change{{Container: "log", Metadata: labels("db")}}}
	for range 2 {
		kept = kept.Written(running(), stage, now)
	}
	if diff := cmp.Diff(v1beta1.InPlaceUpdateInstance{ContainerID: "c://log", Image: "log:1"}, kept.Extension().Instances["log"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What kubelet has not reported, or what the pod does not have, cannot be recorded.
func TestContainerWithoutAStatusHasNoInstanceInTheRecord(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Pod){
		"no status":    func(pod *corev1.Pod) { pod.Status.ContainerStatuses = nil },
		"no container": func(pod *corev1.Pod) { pod.Spec.Containers = pod.Spec.Containers[1:] },
	} {
		pod := running()
		change(pod)
		stage := &plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "app", Image: "app:2"}}}
		got := begun(plan.Change{Container: "app", Image: "app:2"}).Written(pod, stage, now)
		if len(got.Extension().Instances) != 0 || len(got.State.LastContainerStatuses) != 0 || got.Pending() {
			t.Errorf("%s: %+v", name, got.State)
		}
	}
}

func TestRecordOfAPodThatIsBackInItsServices(t *testing.T) {
	t.Parallel()
	if got := (&record.Record{}).Opened(now); got != nil {
		t.Errorf("a pod without an update has a record: %+v", got)
	}
	before := begun(plan.Change{Container: "app", Image: "app:2"})
	got := before.Opened(now.Add(time.Second))
	if got == nil || got.Extension().Opened == nil || !got.Extension().Opened.Time.Equal(now.Add(time.Second)) || before.Extension().Opened != nil {
		t.Fatalf("%+v, before: %+v", got, before.Extension())
	}
	if got.Extension().DrainSeconds != 5 || got.State.Revision != "r" {
		t.Errorf("the rest of the record is lost: %+v", got.State)
	}
}
