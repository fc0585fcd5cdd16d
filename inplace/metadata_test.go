package inplace_test

import (
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

func TestLabelsAndAnnotationsReachThePod(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), false), false)
	wanted := w.pod.DeepCopy()
	metav1.SetMetaDataLabel(&wanted.ObjectMeta, "team", "gold")
	metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, "example.com/owner", "shop")
	update, err := plan.New(plan.Template(w.pod), plan.Template(wanted), plan.Options{Revision: "next"})
	if err != nil {
		t.Fatal(err)
	}
	step, err := inplace.Start(w.pod, &update, time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inplace.Apply(t.Context(), w, w.pod, step); err != nil {
		t.Fatal(err)
	}
	if w.pod.Labels["team"] != "gold" || w.pod.Annotations["example.com/owner"] != "shop" {
		t.Errorf("labels %v, annotations %v", w.pod.Labels, w.pod.Annotations)
	}
}

func TestPodIsDrainedForAResizeThatRestartsAContainerOnly(t *testing.T) {
	t.Parallel()
	for policy, want := range map[corev1.ResourceResizeRestartPolicy]inplace.StepKind{
		corev1.NotRequired: inplace.StepResize, corev1.RestartContainer: inplace.StepDrain,
	} {
		w := newWorld(podOf(plantest.Template(), true), false)
		w.pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: policy}}
		if err := begin(w, 1<<6, plan.Options{DrainSeconds: 5}); err != nil {
			t.Fatal(err)
		}
		if decision, err := w.next(w.pod.DeepCopy()); err != nil || decision.Step == nil || decision.Step.Kind != want {
			t.Errorf("resize policy %s: %+v, %v, want step %s", policy, decision, err, want)
		}
	}
}

func TestMetadataIsWrittenWithAStep(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), false), false)
	step := inplace.MetadataStep(w.pod, "mark the pod", map[string]string{"a": "1"}, nil).With(map[string]string{"b": "2"}, map[string]string{"c": "3"})
	if step.Message != "mark the pod" || step.Kind != inplace.StepWrite {
		t.Errorf("%+v", step)
	}
	if _, err := inplace.Apply(t.Context(), w, w.pod, step); err != nil {
		t.Fatal(err)
	}
	if w.pod.Labels["a"] != "1" || w.pod.Labels["b"] != "2" || w.pod.Annotations["c"] != "3" {
		t.Errorf("labels %v, annotations %v", w.pod.Labels, w.pod.Annotations)
	}
}

// One that is restarted without need is down for nothing; one that is not keeps its old environment.
func TestContainerIsRestartedForItsEnvironmentUnlessItRunsWithIt(t *testing.T) {
	t.Parallel()
	type change = func(*corev1.Pod, *record.Record)
	recordedAs := func(id string) change {
		return func(_ *corev1.Pod, r *record.Record) {
			r.State.Refit.Instances["app"] = v1beta1.InPlaceUpdateInstance{ContainerID: id, Image: "app:2"}
		}
	}
	forgotten := func(_ *corev1.Pod, r *record.Record) { r.State.Refit.Instances = nil }
	fact := func(id string, of uint64) reported.Containers {
		return reported.Containers{"app": {Name: "app", ContainerID: id, Hashes: v1beta1.RuntimeContainerHashes{ExtractedEnvFromMetadataHash: of}}}
	}
	app := corev1.Container{Name: "app", Image: "app:2", Env: []corev1.EnvVar{plantest.MetadataEnv("TIER", "metadata.labels['tier']")}}
	labels := map[string]string{"tier": "db"}
	hash := reported.ExpectedEnvHash(&app, &metav1.ObjectMeta{Labels: labels})
	const done, wait, step = inplace.KindDone, inplace.KindWait, inplace.KindStep
	for name, tt := range map[string]struct {
		change  change
		known   reported.Containers
		want    inplace.Kind
		message string
	}{
		"another instance runs by now":             {nil, nil, done, ""},
		"the instance from before runs":            {recordedAs("c://2"), nil, step, "restart container app with its new environment"},
		"the daemon says that it has it":           {recordedAs("c://2"), fact("c://2", hash), done, ""},
		"the daemon says that it has another":      {nil, fact("c://2", hash+1), step, "restart container app"},
		"the daemon knows the environment of none": {nil, fact("c://2", 0), done, ""},
		"the daemon is late":                       {recordedAs("c://2"), fact("c://1", hash), step, "restart container app"},
		"nobody knows the instance from before":    {forgotten, nil, wait, "the node's daemon to report the environment of container app"},
		"nor does the daemon know the environment": {forgotten, fact("c://2", 0), wait, "to report the environment"},
		"OpenKruise does not say for which":        {func(_ *corev1.Pod, r *record.Record) { r.State.Refit, r.State.ContainerBatchesRecord = nil, nil }, nil, wait, "to report the environment"},
		"OpenKruise has begun with another": {func(_ *corev1.Pod, r *record.Record) {
			r.State.Refit, r.State.ContainerBatchesRecord[0].Containers = nil, []string{"log"}
		}, fact("c://2", hash+1), done, ""},
		"it is not begun":         {func(_ *corev1.Pod, r *record.Record) { r.State.ContainerBatchesRecord = nil }, nil, done, ""},
		"it has no such variable": {func(pod *corev1.Pod, _ *record.Record) { pod.Spec.Containers[0].Env = nil }, fact("c://2", hash+1), done, ""},
		"no environment changes":  {func(_ *corev1.Pod, r *record.Record) { r.State.UpdateEnvFromMetadata = false }, fact("c://2", hash+1), done, ""},
		"it is being created": {func(pod *corev1.Pod, _ *record.Record) {
			pod.Status.ContainerStatuses[0].State = waiting("ContainerCreating", "")
		}, fact("c://2", hash+1), wait, "to start container app"},
		"the next environment is still to be written": {func(_ *corev1.Pod, r *record.Record) {
			r.State.NextContainerRefMetadata = map[string]v1beta1.InPlaceUpdateMetadata{"app": {Labels: map[string]string{"tier": "next"}}}
		}, fact("c://2", hash+1), step, "change the metadata that container app refers to"},
		"kubelet may not have it yet": {func(pod *corev1.Pod, r *record.Record) {
			recordedAs("c://2")(pod, r)
			r.State.Refit.Written = &metav1.MicroTime{Time: morning}
		}, nil, wait, "to observe the new metadata before container app is restarted"},
	} {
		pod, recorded := updatedPod()
		pod.Spec.Containers[0], pod.Labels = app, labels
		recorded.State.UpdateImages, recorded.State.UpdateEnvFromMetadata, recorded.State.LastContainerStatuses = false, true, nil
		if tt.change != nil {
			tt.change(pod, recorded)
		}
		got := inplace.Next(pod, recorded, tt.known, morning)
		if got.Kind != tt.want || !strings.Contains(got.Message, tt.message) {
			t.Errorf("%s: %s, %s", name, got.Kind, got.Message)
		}
		if restart := (inplace.Instance{Container: "app", ContainerID: "c://2"}); got.Step != nil && got.Step.Kind == inplace.StepRestart && got.Step.Restart != restart {
			t.Errorf("%s: %+v", name, got.Step.Restart)
		}
	}
}

// A container that both restart is down twice; one that neither does keeps its old environment.
func TestContainerOfADrainedPodIsRestartedByTheDaemonOrByRequest(t *testing.T) {
	t.Parallel()
	fact := func(id string, of uint64) reported.Containers {
		return reported.Containers{"app": {Name: "app", ContainerID: id, Hashes: v1beta1.RuntimeContainerHashes{ExtractedEnvFromMetadataHash: of}}}
	}
	for name, tt := range map[string]struct {
		known      reported.Containers
		sidecarSet string
		daemon     bool
	}{
		"the daemon knows the environment":                {fact("c://2", 1), "", true},
		"the daemon is late":                              {fact("c://1", 1), "", true},
		"the daemon knows the environment of none":        {fact("c://2", 0), "", false},
		"the daemon knows another container":              {reported.Containers{"log": {Name: "log", ContainerID: "c://l"}}, "", false},
		"there is no daemon":                              {nil, "", false},
		"of a SidecarSet, which leaves the gate as it is": {fact("c://2", 1), "log", false},
	} {
		pod, recorded := updatedPod()
		pod.Spec.Containers[0].Env = []corev1.EnvVar{plantest.MetadataEnv("TIER", "metadata.labels['tier']")}
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse}}
		recorded.SidecarSet = tt.sidecarSet
		recorded.State.UpdateImages, recorded.State.UpdateEnvFromMetadata, recorded.State.LastContainerStatuses = false, true, nil
		recorded.State.Refit.Instances["app"] = v1beta1.InPlaceUpdateInstance{ContainerID: "c://2", Image: "app:2"}
		got := inplace.Next(pod, recorded, tt.known, morning)
		if byRequest := got.Step != nil && got.Step.Kind == inplace.StepRestart; byRequest == tt.daemon || tt.daemon != strings.Contains(got.Message, "waiting for the node's daemon to restart container app") {
			t.Errorf("%s: %s, %s", name, got.Kind, got.Message)
		}
	}
}
