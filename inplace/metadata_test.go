package inplace_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
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
