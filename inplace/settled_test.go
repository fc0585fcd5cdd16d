package inplace_test

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan/plantest"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/kubelet"
)

var morning = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)

// updatedPod is one whose container app has been given app:2, and runs as another instance than at the beginning.
func updatedPod() (*corev1.Pod, *record.Record) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:2"}, {Name: "log", Image: "log:1"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status = corev1.PodStatus{ObservedGeneration: 2, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "app", ContainerID: "c://2", Image: "app:2", ImageID: "sha256:2", Ready: true, State: running},
		{Name: "log", ContainerID: "c://l", Image: "log:1", ImageID: "sha256:l", Ready: true, State: running},
	}}
	began := metav1.NewTime(morning.Add(-time.Minute))
	return pod, &record.Record{State: v1beta1.InPlaceUpdateState{
		Revision: "r", UpdateTimestamp: began, UpdateImages: true,
		LastContainerStatuses:  map[string]v1beta1.InPlaceUpdateContainerStatus{"app": {ImageID: "sha256:1"}},
		ContainerBatchesRecord: []v1beta1.InPlaceUpdateContainerBatch{{Timestamp: began, Containers: []string{"app"}}},
		Refit:                  &v1beta1.InPlaceUpdateExtension{Instances: map[string]v1beta1.InPlaceUpdateInstance{"app": {ContainerID: "c://1", Image: "app:1"}}},
	}}
}

// Done means that the container runs with the new image and is ready, as far as anybody can tell.
func TestAnUpdateIsDoneOnlyWhenItsContainersRunWithTheirImageAndAreReady(t *testing.T) {
	t.Parallel()
	type status = corev1.ContainerStatus
	app := func(change func(*status)) func(*corev1.Pod, *record.Record) {
		return func(pod *corev1.Pod, _ *record.Record) { change(&pod.Status.ContainerStatuses[0]) }
	}
	superseded := func(image string) func(*corev1.Pod, *record.Record) {
		return func(pod *corev1.Pod, r *record.Record) {
			r.State.Refit.Instances["app"] = v1beta1.InPlaceUpdateInstance{ContainerID: "c://1", Image: "app:1", Superseded: []string{"app:between"}}
			pod.Status.ContainerStatuses[0].Image = image
		}
	}
	hashOf := func(image string) uint64 {
		n, err := strconv.ParseUint(kubelet.ContainerHash(&corev1.Container{Name: "app", Image: image}), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	fact := func(id string, hash uint64) reported.Containers {
		return reported.Containers{"app": {Name: "app", ContainerID: id, Hashes: v1beta1.RuntimeContainerHashes{PlainHash: hash}}}
	}
	const done, wait, blocked = inplace.KindDone, inplace.KindWait, inplace.KindBlocked
	for name, tt := range map[string]struct {
		change func(*corev1.Pod, *record.Record)
		known  reported.Containers
		want   inplace.Kind
	}{
		"it runs":                    {nil, nil, done},
		"it is not ready":            {app(func(s *status) { s.Ready = false }), nil, wait},
		"it is being created":        {app(func(s *status) { s.State = waiting("ContainerCreating", "") }), nil, wait},
		"its image cannot be pulled": {app(func(s *status) { s.State, s.ContainerID, s.ImageID = waiting("ErrImagePull", "no"), "", "" }), nil, blocked},
		"another image before it cannot be pulled": {func(pod *corev1.Pod, r *record.Record) {
			superseded("app:1")(pod, r)
			pod.Status.ContainerStatuses[0].State = waiting("ErrImagePull", `failed to pull and unpack image "docker.io/library/app:between": not found`)
		}, nil, wait},
		"another image before it is pulled again later": {func(pod *corev1.Pod, r *record.Record) {
			superseded("app:1")(pod, r)
			pod.Status.ContainerStatuses[0].State = waiting("ImagePullBackOff", `Back-off pulling image "app:between"`)
		}, nil, wait},
		"its image cannot be pulled, after another": {func(pod *corev1.Pod, r *record.Record) {
			superseded("app:1")(pod, r)
			pod.Status.ContainerStatuses[0].State = waiting("ErrImagePull", `failed to pull and unpack image "docker.io/library/app:2": not found`)
		}, nil, blocked},
		"it crashes": {app(func(s *status) { s.State = waiting("CrashLoopBackOff", "back-off") }), nil, blocked},
		"it has ended for good": {func(pod *corev1.Pod, _ *record.Record) {
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, nil, blocked},
		"it is the instance from before": {app(func(s *status) { s.ContainerID, s.Image, s.ImageID = "c://1", "app:1", "sha256:1" }), nil, wait},
		"kubelet says nothing of it": {func(pod *corev1.Pod, _ *record.Record) {
			pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[1:]
		}, nil, wait},
		"kubelet has not seen the change":       {func(pod *corev1.Pod, _ *record.Record) { pod.Status.ObservedGeneration = 1 }, nil, wait},
		"kubelet does not say what it has seen": {func(pod *corev1.Pod, _ *record.Record) { pod.Status.ObservedGeneration = 0 }, nil, done},
		"kubelet has seen more":                 {func(pod *corev1.Pod, _ *record.Record) { pod.Status.ObservedGeneration = 3 }, nil, done},
		"no image ID is known":                  {app(func(s *status) { s.ImageID = "" }), nil, wait},
		"the runtime names the image otherwise": {app(func(s *status) { s.Image = "mirror/app:2" }), nil, done},
		"it is of the image in between":         {superseded("app:between"), nil, wait},
		"it is of the image, after another":     {superseded("app:2"), nil, done},
		"of a third name, after another":        {superseded("mirror/app:2"), nil, done},
		"of the image, which another had replaced": {func(pod *corev1.Pod, r *record.Record) {
			superseded("app:2")(pod, r)
			r.State.Refit.Instances["app"].Superseded[0] = "app:2"
		}, nil, done},
		"of the digest in between": {func(pod *corev1.Pod, r *record.Record) {
			superseded("mirror/app:2")(pod, r)
			r.State.Refit.Instances["app"].Superseded[0], pod.Status.ContainerStatuses[0].ImageID = digested, "mirror/app@"+digest
		}, nil, wait},
		"it is the instance from before, of whichever image": {app(func(s *status) { s.ContainerID, s.Image, s.ImageID = "c://1", "mirror/app:1", "sha256:9" }), nil, wait},
		"the image was changed back, and has another name": {func(pod *corev1.Pod, _ *record.Record) {
			pod.Spec.Containers[0].Image = "app:1"
			s := &pod.Status.ContainerStatuses[0]
			s.ContainerID, s.Image, s.ImageID = "c://1", "mirror/app:1", "sha256:1"
		}, nil, done},
		"the daemon says that it is the image":               {nil, fact("c://2", hashOf("app:2")), done},
		"the daemon says that it is another":                 {nil, fact("c://2", hashOf("app:1")), wait},
		"the daemon does not know this image":                {nil, fact("c://2", 0), done},
		"the daemon is late":                                 {nil, fact("c://1", hashOf("app:1")), done},
		"the daemon is late, and the image has another name": {app(func(s *status) { s.Image = "mirror/app:2" }), fact("c://1", hashOf("app:1")), wait},
		"the image was changed back": {func(pod *corev1.Pod, _ *record.Record) {
			pod.Spec.Containers[0].Image = "app:1"
			s := &pod.Status.ContainerStatuses[0]
			s.ContainerID, s.Image, s.ImageID = "c://1", "app:1", "sha256:1"
		}, nil, done},
		"another container is not ready": {func(pod *corev1.Pod, _ *record.Record) { pod.Status.ContainerStatuses[1].Ready = false }, nil, done},
		"a container of it is gone": {func(_ *corev1.Pod, r *record.Record) {
			r.State.LastContainerStatuses["gone"] = v1beta1.InPlaceUpdateContainerStatus{ImageID: "x"}
			r.State.ContainerBatchesRecord[0].Containers = []string{"app", "gone"}
		}, nil, done},
	} {
		pod, recorded := updatedPod()
		if tt.change != nil {
			tt.change(pod, recorded)
		}
		got := inplace.Next(pod, recorded, tt.known, morning)
		if got.Kind != tt.want {
			t.Errorf("%s: %s, %q", name, got.Kind, got.Message)
		}
		if settled := inplace.Settled(pod, recorded, tt.known, morning, []string{"app"}, false); settled != (tt.want == done) {
			t.Errorf("%s: settled %t", name, settled)
		}
	}
}

func TestContainersAreSettledOnlyIfAllOfThemAre(t *testing.T) {
	t.Parallel()
	pod, recorded := updatedPod()
	pod.Status.ContainerStatuses[1].Ready = false
	for name, tt := range map[string]struct {
		recorded   *record.Record
		containers []string
		want       bool
	}{
		"the one":              {recorded, []string{"app"}, true},
		"the other":            {recorded, []string{"log"}, false},
		"both":                 {recorded, []string{"app", "log"}, false},
		"one that is gone":     {recorded, []string{"gone"}, false},
		"without any update":   {nil, []string{"app"}, true},
		"not ready, of no one": {nil, []string{"log"}, false},
	} {
		if got := inplace.Settled(pod, tt.recorded, nil, morning, tt.containers, true); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The image of one of two containers cannot be pulled, and the other has not been started: kubelet goes on with the other.
func TestAContainerThatIsStuckIsNotAllThatIsSaid(t *testing.T) {
	t.Parallel()
	pod, recorded := updatedPod()
	recorded.State.LastContainerStatuses["log"] = v1beta1.InPlaceUpdateContainerStatus{ImageID: "sha256:0"}
	recorded.State.ContainerBatchesRecord[0].Containers = []string{"app", "log"}
	pod.Status.ContainerStatuses[0].State = waiting("ErrImagePull", "no such image")
	pod.Status.ContainerStatuses[1].State = waiting("ContainerCreating", "")
	if got := inplace.Next(pod, recorded, nil, morning); got.Kind != inplace.KindWait || got.Container != "log" {
		t.Errorf("%s of %s: %s", got.Kind, got.Container, got.Message)
	}
	pod.Status.ContainerStatuses[1].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	if got := inplace.Next(pod, recorded, nil, morning); got.Kind != inplace.KindBlocked || got.Container != "app" || got.Reason != "ErrImagePull" {
		t.Errorf("%s of %s: %s", got.Kind, got.Container, got.Message)
	}
}

// Of stuck containers the one is named because of which the pod is not ready, or else the first.
func TestOfSeveralThatAreStuckOneIsTold(t *testing.T) {
	t.Parallel()
	stuck := func(app, log corev1.ContainerState) func(*corev1.Pod, *record.Record) {
		return func(pod *corev1.Pod, _ *record.Record) {
			pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			pod.Status.ContainerStatuses[0].State, pod.Status.ContainerStatuses[1].State = app, log
		}
	}
	image, ended := waiting("ErrImagePull", "no such image"), corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	resize := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred}
	for name, tt := range map[string]struct {
		change            func(*corev1.Pod, *record.Record)
		resize            bool
		container, reason string
	}{
		"both images":                     {stuck(image, waiting("CrashLoopBackOff", "back-off")), false, "app", "ErrImagePull"},
		"one has ended for good":          {stuck(ended, image), false, "log", "ErrImagePull"},
		"the other has":                   {stuck(image, ended), false, "app", "ErrImagePull"},
		"a resize, and an image":          {stuck(image, running), true, "app", "ErrImagePull"},
		"a resize, and nothing else":      {stuck(running, running), true, "", corev1.PodReasonDeferred},
		"a resize that is not of its own": {func(_ *corev1.Pod, r *record.Record) { r.State.UpdateResources = false }, true, "", ""},
	} {
		pod, recorded := updatedPod()
		recorded.State.LastContainerStatuses["log"] = v1beta1.InPlaceUpdateContainerStatus{ImageID: "sha256:0"}
		recorded.State.UpdateResources = true
		if tt.resize {
			pod.Status.Conditions = []corev1.PodCondition{resize}
		}
		tt.change(pod, recorded)
		if got := inplace.Next(pod, recorded, nil, morning); (got.Kind == inplace.KindBlocked) != (tt.reason != "") || got.Container != tt.container || got.Reason != tt.reason {
			t.Errorf("%s: %s of %q: %s, %s", name, got.Kind, got.Container, got.Reason, got.Message)
		}
	}
}

// The node may have room for other resources than those that it had none for.
func TestResourcesThatWaitAreReplacedByTheNext(t *testing.T) {
	t.Parallel()
	pod, recorded := updatedPod()
	recorded.State.UpdateResources = true
	recorded.State.NextContainerResources = map[string]corev1.ResourceRequirements{"app": plantest.Resources("100m", "")}
	pod.Spec.Containers[0].Resources = plantest.Resources("64", "")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
	if got := inplace.Next(pod, recorded, nil, morning); got.Step == nil || got.Step.Kind != inplace.StepResize {
		t.Errorf("%s: %s", got.Kind, got.Message)
	}
}

// A resize that waits stops no container: the pod serves meanwhile.
func TestPodIsInItsServicesWhileAResizeWaits(t *testing.T) {
	t.Parallel()
	pod, recorded := updatedPod()
	recorded.State.UpdateResources = true
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}, {Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse},
	}
	if got := inplace.Next(pod, recorded, nil, morning); got.Step == nil || got.Step.Kind != inplace.StepMarkReady {
		t.Errorf("%s: %s", got.Kind, got.Message)
	}
	pod.Status.Conditions[1].Status = corev1.ConditionTrue
	if got := inplace.Next(pod, recorded, nil, morning); got.Kind != inplace.KindBlocked || got.Reason != corev1.PodReasonInfeasible || !got.Final {
		t.Errorf("%s: %s", got.Kind, got.Message)
	}
}

// kubelet takes a while to say that the pod is ready; what says so for it is written once.
func TestReadyIsWrittenForKubeletOnceOnly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opened bool
		ready  corev1.ConditionStatus
		step   bool
	}{
		"not yet":         {false, corev1.ConditionFalse, true},
		"before":          {true, corev1.ConditionFalse, false},
		"kubelet says so": {false, corev1.ConditionTrue, false},
	} {
		pod, recorded := updatedPod()
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionTrue},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: tt.ready},
		}
		if tt.opened {
			recorded.State.Refit.Opened = &metav1.Time{Time: morning}
		}
		got := inplace.Next(pod, recorded, nil, morning)
		if (got.Step != nil && got.Step.Kind == inplace.StepMarkReady) != tt.step || (got.Kind == inplace.KindDone) == tt.step {
			t.Errorf("%s: %s, %s", name, got.Kind, got.Message)
		}
	}
}
