package workload_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/rollout/workload"
)

// A LimitRange, or another admission plugin, has given pods limits that no template has.
func TestResourcesThatOnlyPodsHaveStay(t *testing.T) {
	t.Parallel()
	former, present := template("app:1"), template("app:1")
	former.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	present.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	fields, err := workload.NewFields(&present, []*corev1.PodTemplateSpec{&former}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Labels: former.Labels}, Spec: *former.Spec.DeepCopy()}
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	update, err := fields.Update(pod, plan.Options{})
	if err != nil || fields.Has(pod) {
		t.Fatalf("update: %v, has the template: %t", err, fields.Has(pod))
	}
	wanted := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
	if got := *update.Changes.Containers[0].Resources; !apiequality.Semantic.DeepEqual(wanted, got) {
		t.Errorf("resources %v, want %v", got, wanted)
	}
	pod.Spec.Containers[0].Resources = wanted
	if !fields.Has(pod) {
		t.Error("the pod does not have the template after its update")
	}
}

// A limit that an update has added cannot be removed from a running pod: the pods that have it are named, instead of an update that
// never ends.
func TestPodThatCannotGoBackHasFailed(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 2)
		requests := func(t *corev1.PodTemplateSpec) {
			*t = template("app:1")
			t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		}
		w.edit(requests)
		w.rounds(20)
		w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureContinue
		w.policy.Spec.Steps = []v1alpha1.RolloutStep{{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}}
		w.edit(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image = "app:2"
			t.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		})
		w.controller()
		w.look(-1)
		if len(w.last.Actions) != 1 || w.last.Actions[0].Kind != workload.ActionUpdate {
			t.Fatalf("%s: actions %v", kind, w.last.Actions)
		}
		pod := w.pods[w.last.Actions[0].Pod.Name]
		pod.Spec.Containers[0].Image = "app:2"
		pod.Spec.Containers[0].Resources = *w.template().Spec.Containers[0].Resources.DeepCopy()
		w.edit(requests)
		w.controller()
		w.look(0)
		if slices.ContainsFunc(w.last.Actions, func(a workload.Action) bool { return a.Kind == workload.ActionUpdate }) ||
			len(w.policy.Status.Failures) != 1 || w.policy.Status.Failures[0].Pod != pod.Name || w.policy.Status.Failures[0].Reason != v1alpha1.ReasonNotInPlace {
			t.Errorf("%s: actions %v, failures %v", kind, w.last.Actions, w.policy.Status.Failures)
		}
	}
}

// The controllers of StatefulSets and DaemonSets compare the text of templates. A pod of a revision that is not known is theirs.
func TestTemplateThatIsOnlyWrittenDifferentlyReplacesNoPod(t *testing.T) {
	t.Parallel()
	memory := func(size string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
		}
	}
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		for unknown := range 2 {
			w := newWorld(t, kind, 3)
			w.edit(memory("1Gi"))
			w.rounds(20)
			former := w.target().Label
			w.created = 0
			w.policy.Spec.PodUpdatePolicy = v1alpha1.PodUpdateInPlaceOnly
			w.edit(memory("1073741824"))
			if unknown > 0 {
				w.pods["web-1"].Labels[appsv1.ControllerRevisionHashLabelKey] = "unknown"
			}
			w.rounds(20)
			if label := w.target().Label; w.created != unknown || label == former || w.progressing() != "True Completed" || w.meta().Labels[v1alpha1.LabelHeld] != "" {
				t.Errorf("%s: %d pods created, want %d; revision %s, %s before; %s, labels %v", kind, w.created, unknown, label, former, w.progressing(), w.meta().Labels)
			}
			for name, pod := range w.pods {
				if got := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; got != w.target().Label {
					t.Errorf("%s: %s has revision %s", kind, name, got)
				}
			}
		}
	}
}
