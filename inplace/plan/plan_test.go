package plan_test

import (
	"errors"
	"fmt"
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
	for name, tt := range map[string]staged{
		"an image": {change: func(pod *corev1.PodTemplateSpec) { pod.Spec.Containers[1].Image = "log:2" }, want: []string{"Image log"}},
		"resources, then metadata, then images": {
			change: func(pod *corev1.PodTemplateSpec) {
				pod.Labels["plain"] = "x"
				pod.Spec.Containers[1].Image = "log:2"
				pod.Spec.Containers[0].Resources = plantest.Resources("200m", "")
			},
			want: []string{"Resize app", "Metadata", "Image log"},
		},
		"CPU beside a device that stays": {
			start: func(pod *corev1.PodTemplateSpec) {
				pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
			},
			change: func(pod *corev1.PodTemplateSpec) {
				pod.Spec.Containers[0].Resources.Requests = plantest.Resources("200m", "").Requests
			},
			want: []string{"Resize app"},
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
		"no launch priority is as the highest": {
			start: func(pod *corev1.PodTemplateSpec) {
				pod.Spec.Containers[1].Env = append(pod.Spec.Containers[1].Env, barrier("5"))
			},
			change: bothImages, want: []string{"Image app,log"},
		},
		"no launch priority is as the highest of the containers that change": {
			start: func(pod *corev1.PodTemplateSpec) {
				pod.Spec.Containers[1].Env = append(pod.Spec.Containers[1].Env, barrier("5"))
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "first", Image: "first:1", Env: []corev1.EnvVar{barrier("9")}})
			},
			change: bothImages, want: []string{"Image app,log"},
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
			tt.check(t)
		})
	}
}

// staged is a change of a template, and the stages in which it is made in a pod.
type staged struct {
	start, change func(*corev1.PodTemplateSpec) // start: of the template before
	options       plan.Options
	want          []string
}

func (tt *staged) check(t *testing.T) {
	t.Helper()
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
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(old, updated *corev1.PodTemplateSpec)
		reason plan.Reason
		field  string
	}{
		"the same pod": {func(_, _ *corev1.PodTemplateSpec) {}, plan.ReasonNoChange, ""},
		"what programs say of the pod": {func(was, is *corev1.PodTemplateSpec) {
			for _, key := range []string{
				v1beta1.AnnotationInPlaceUpdateState, v1beta1.LegacyAnnotationInPlaceUpdateState,
				v1beta1.AnnotationInPlaceUpdateGrace, v1beta1.LegacyAnnotationInPlaceUpdateGrace, v1beta1.AnnotationRuntimeContainersMeta,
			} {
				was.Annotations[key] = "{}"
			}
			is.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = "of another time" // the others are not in a manifest
		}, plan.ReasonNoChange, ""},
		"what the API server would store": {func(was, is *corev1.PodTemplateSpec) {
			was.Spec.Containers[0].Resources = plantest.Resources("101m", "1")
			is.Spec.Containers[0].Resources = plantest.Resources("100.5m", "1")
			was.Spec.Containers[1].Resources, is.Spec.Containers[1].Resources = plantest.Resources("1", "1"), plantest.Resources("", "1")
		}, plan.ReasonNoChange, ""},
		"a quantity that cannot be compared": {func(_, is *corev1.PodTemplateSpec) {
			is.Spec.Containers[0].Resources = plantest.Resources("1e300000000", "")
		}, plan.ReasonInvalid, ""},
		"a command":      {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[0].Command = []string{"sh"} }, plan.ReasonImmutableField, "spec.containers[0].command"},
		"an environment": {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[1].Env[0].Name = "OTHER" }, plan.ReasonImmutableField, "spec.containers[1].env[0].name"},
		"a new container": {func(_, is *corev1.PodTemplateSpec) {
			is.Spec.Containers = append(is.Spec.Containers, corev1.Container{Name: "more"})
		}, plan.ReasonImmutableField, "spec.containers"},
		"another order":   {func(_, is *corev1.PodTemplateSpec) { slices.Reverse(is.Spec.Containers) }, plan.ReasonImmutableField, "spec.containers"},
		"a node selector": {func(_, is *corev1.PodTemplateSpec) { is.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "x"} }, plan.ReasonImmutableField, "spec.nodeSelector"},
		"a value in a map": {func(was, is *corev1.PodTemplateSpec) {
			was.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux", "zone": "a"}
			is.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "x", "zone": "a"}
		}, plan.ReasonImmutableField, "spec.nodeSelector[kubernetes.io/os]"},
		"another variable": {func(_, is *corev1.PodTemplateSpec) {
			is.Spec.Containers[1].Env = append(is.Spec.Containers[1].Env, corev1.EnvVar{Name: "MORE"})
		}, plan.ReasonImmutableField, "spec.containers[1].env"},
		"a field that is removed": {func(was, _ *corev1.PodTemplateSpec) { was.Spec.Containers[0].WorkingDir = "/" }, plan.ReasonImmutableField, "spec.containers[0].workingDir"},
		"an init container":       {func(_, is *corev1.PodTemplateSpec) { is.Spec.InitContainers[0].Image = "setup:2" }, plan.ReasonInitContainer, "spec.initContainers[0]"},
		"no image":                {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[0].Image = "" }, plan.ReasonInvalid, "spec.containers[0].image"},
		"a removed request":       {func(_, is *corev1.PodTemplateSpec) { is.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, plan.ReasonRemovedResource, "spec.containers[0].resources.requests.cpu"},
		"a device": {func(_, is *corev1.PodTemplateSpec) {
			is.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
		}, plan.ReasonResource, "spec.containers[0].resources.limits.example.com/gpu"},
		"a device of none": {func(_, is *corev1.PodTemplateSpec) {
			is.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("0")}
		}, plan.ReasonResource, "spec.containers[0].resources.limits.example.com/gpu"},
		"a removed limit": {func(was, _ *corev1.PodTemplateSpec) {
			was.Spec.Containers[0].Resources = plantest.Resources("100m", "1")
		}, plan.ReasonRemovedResource, "spec.containers[0].resources.limits.cpu"},
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

// A pod of another workload differs in everything: nobody reads the end of such a list.
func TestOnlyTheFirstDifferencesAreReported(t *testing.T) {
	t.Parallel()
	updated := plantest.Template()
	updated.Spec.NodeSelector = map[string]string{}
	old := updated.DeepCopy()
	for i := range 25 {
		old.Spec.NodeSelector[fmt.Sprintf("k%02d", i)], updated.Spec.NodeSelector[fmt.Sprintf("k%02d", i)] = "a", "b"
	}
	_, err := plan.New(old, updated, plan.Options{})
	var refused *plan.RefusedError
	if !errors.As(err, &refused) || len(refused.Refusals) != 20 || refused.Refusals[19].Field != "spec.nodeSelector.k19" {
		t.Errorf("%v", err)
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
	slices.Reverse(updated.Spec.Containers)
	if _, err := plan.New(plantest.Template(), updated, plan.Options{}); !errors.As(err, &refused) || len(refused.Refusals) != 2 {
		t.Errorf("%v; want two refusals: what is in containers of another order is not compared", err)
	}
}
