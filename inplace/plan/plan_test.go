package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
)

// stages are written as "Kind container,container".
func stages(update plan.Update) []string {
	var all []string
	for _, stage := range update.Stages {
		all = append(all, strings.TrimSpace(string(stage.Kind)+" "+strings.Join(stage.Containers(), ",")))
	}
	return all
}

func TestPlanOrdersStages(t *testing.T) {
	t.Parallel()
	barrier := func(priority string) corev1.EnvVar {
		return corev1.EnvVar{Name: v1beta1.EnvContainerBarrier, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "p_" + priority}}}
	}
	bothImages := func(pod *corev1.PodTemplateSpec) {
		pod.Spec.Containers[0].Image, pod.Spec.Containers[1].Image = "app:2", "log:2"
	}
	for name, tt := range map[string]struct {
		start   func(*corev1.PodTemplateSpec)
		change  func(*corev1.PodTemplateSpec)
		options plan.Options
		want    []string
	}{
		"an image": {change: func(pod *corev1.PodTemplateSpec) { pod.Spec.Containers[1].Image = "log:2" }, want: []string{"Image log"}},
		"resources, then metadata, then images": {
			change: func(pod *corev1.PodTemplateSpec) {
				pod.Labels["plain"] = "x"
				pod.Spec.Containers[1].Image = "log:2"
				pod.Spec.Containers[0].Resources = plantest.Resources("200m", "")
			},
			want: []string{"Resize app", "Metadata", "Image log"},
		},
		"an added limit":                              {change: func(pod *corev1.PodTemplateSpec) { pod.Spec.Containers[0].Resources = plantest.Resources("100m", "1") }, want: []string{"Resize app"}},
		"a native sidecar before the others":          {change: func(pod *corev1.PodTemplateSpec) { bothImages(pod); pod.Spec.InitContainers[1].Image = "mesh:2" }, want: []string{"Image mesh", "Image app,log"}},
		"a label that an environment refers to":       {change: func(pod *corev1.PodTemplateSpec) { pod.Labels["tier"] = "db" }, want: []string{"Restart app"}},
		"an annotation that two refer to":             {change: func(pod *corev1.PodTemplateSpec) { pod.Annotations["config"] = "two" }, want: []string{"Restart app,log"}},
		"a removed annotation restarts nothing":       {change: func(pod *corev1.PodTemplateSpec) { delete(pod.Annotations, "config") }, want: []string{"Metadata"}},
		"image and environment of one container":      {change: func(pod *corev1.PodTemplateSpec) { pod.Labels["tier"] = "db"; pod.Spec.Containers[0].Image = "app:2" }, want: []string{"Image app"}},
		"groups one after another":                    {change: bothImages, options: plan.Options{Order: [][]string{{"log"}, {"app"}}}, want: []string{"Image log", "Image app"}},
		"who is not named in a group is in the first": {change: bothImages, options: plan.Options{Order: [][]string{{"other"}, {"app"}}}, want: []string{"Image log", "Image app"}},
		"launch priority": {
			start: func(pod *corev1.PodTemplateSpec) {
				pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, barrier("-1"))
				pod.Spec.Containers[1].Env = append(pod.Spec.Containers[1].Env, barrier("0"))
			},
			change: bothImages, want: []string{"Image log", "Image app"},
		},
		"a later container that shares changed metadata is pulled forward": {
			change:  func(pod *corev1.PodTemplateSpec) { bothImages(pod); pod.Annotations["config"] = "two" },
			options: plan.Options{Order: [][]string{{"log"}, {"app"}}}, want: []string{"Image app,log"},
		},
		"a launch priority that cannot be read is none": {
			start: func(pod *corev1.PodTemplateSpec) {
				pod.Spec.Containers[0].Env = []corev1.EnvVar{barrier("x"), {Name: v1beta1.EnvContainerBarrier}}
			},
			change: bothImages, want: []string{"Image app,log"},
		},
		"an image of a pod that is not restarted, which is on the node": {
			start:  func(pod *corev1.PodTemplateSpec) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever },
			change: bothImages, options: plan.Options{ImagesPresent: true}, want: []string{"Image app,log"},
		},
		"a quantity written differently is the same": {
			change: func(pod *corev1.PodTemplateSpec) {
				pod.Spec.Containers[0].Resources = plantest.Resources("0.1", "")
				pod.Spec.Containers[1].Image = "log:2"
			},
			want: []string{"Image log"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := plantest.Template()
			if tt.start != nil {
				tt.start(old)
			}
			updated := old.DeepCopy()
			tt.change(updated)
			update, err := plan.New(old, updated, tt.options)
			if err != nil || !slices.Equal(stages(update), tt.want) {
				t.Errorf("stages %q, %v; want %q", stages(update), err, tt.want)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(old, updated *corev1.PodTemplateSpec)
		reason plan.Reason
		field  string
	}{
		"the same pod":   {func(_, _ *corev1.PodTemplateSpec) {}, plan.ReasonNoChange, ""},
		"a command":      {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[0].Command = []string{"sh"} }, plan.ReasonImmutableField, "spec.containers[0].command"},
		"an environment": {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[1].Env[0].Name = "OTHER" }, plan.ReasonImmutableField, "spec.containers[1].env[0].name"},
		"a new container": {func(_, is *corev1.PodTemplateSpec) {
			is.Spec.Containers = append(is.Spec.Containers, corev1.Container{Name: "more"})
		}, plan.ReasonImmutableField, "spec.containers"},
		"another order":     {func(_, is *corev1.PodTemplateSpec) { slices.Reverse(is.Spec.Containers) }, plan.ReasonImmutableField, "spec.containers"},
		"a node selector":   {func(_, is *corev1.PodTemplateSpec) { is.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "x"} }, plan.ReasonImmutableField, "spec.nodeSelector"},
		"an init container": {func(_, is *corev1.PodTemplateSpec) { is.Spec.InitContainers[0].Image = "setup:2" }, plan.ReasonInitContainer, "spec.initContainers[0]"},
		"no image":          {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[0].Image = "" }, plan.ReasonInvalid, "spec.containers[0].image"},
		"a removed request": {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, plan.ReasonRemovedResource, "spec.containers[0].resources.requests.cpu"},
		"a device": {func(_, is *corev1.PodTemplateSpec) {
			is.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
		}, plan.ReasonResource, "spec.containers[0].resources.limits.example.com/gpu"},
		"a request above the limit": {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[0].Resources = plantest.Resources("2", "1") }, plan.ReasonInvalid, "spec.containers[0].resources.requests.cpu"},
		"a negative request":        {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[0].Resources = plantest.Resources("-1", "") }, plan.ReasonInvalid, "spec.containers[0].resources.requests.cpu"},
		"another QoS class": {func(was, is *corev1.PodTemplateSpec) {
			was.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
			is.Spec.Containers[0].Resources = plantest.Resources("100m", "")
		}, plan.ReasonQoSClass, ""},
		"the image of a container that is never restarted": {func(was, is *corev1.PodTemplateSpec) {
			was.Spec.RestartPolicy, is.Spec.RestartPolicy = corev1.RestartPolicyNever, corev1.RestartPolicyNever
			is.Spec.Containers[0].Image = "app:2"
		}, plan.ReasonRestartPolicyNever, "spec.containers[0].image"},
		"the environment of a container that is never restarted": {func(was, is *corev1.PodTemplateSpec) {
			was.Spec.RestartPolicy, is.Spec.RestartPolicy = corev1.RestartPolicyNever, corev1.RestartPolicyNever
			is.Labels["tier"] = "db"
		}, plan.ReasonRestartPolicyNever, "metadata"},
		"a static pod": {func(was, is *corev1.PodTemplateSpec) {
			was.Annotations[corev1.MirrorPodAnnotationKey] = "x"
			is.Spec.Containers[0].Image = "app:2"
		}, plan.ReasonStaticPod, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, updated := plantest.Template(), plantest.Template()
			tt.change(old, updated)
			_, err := plan.New(old, updated, plan.Options{})
			var refused *plan.RefusedError
			if !errors.As(err, &refused) || !refused.Has(tt.reason) {
				t.Fatalf("%v; want %s", err, tt.reason)
			}
			if refused.Refusals[0].Field != tt.field {
				t.Errorf("field %q, want %q: %v", refused.Refusals[0].Field, tt.field, err)
			}
		})
	}
}

func TestPlanReportsAllThatIsRefused(t *testing.T) {
	t.Parallel()
	updated := plantest.Template()
	updated.Spec.Containers[0].Command = []string{"sh"}
	updated.Spec.Containers[1].WorkingDir = "/"
	updated.Spec.InitContainers[0].Image = "setup:2"
	_, err := plan.New(plantest.Template(), updated, plan.Options{})
	var refused *plan.RefusedError
	if !errors.As(err, &refused) || len(refused.Refusals) != 3 {
		t.Errorf("%v; want three refusals", err)
	}
}
