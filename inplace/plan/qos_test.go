package plan

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, value := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if value != "" {
			list[name] = resource.MustParse(value)
		}
	}
	return list
}

func with(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

// The classes are those that the documentation of Kubernetes gives for such pods.
func TestQoSClassAsTheAPIServerComputesIt(t *testing.T) {
	t.Parallel()
	none, full := list("", ""), list("1", "1Gi")
	guaranteed := with(full, full)
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want corev1.PodQOSClass
	}{
		"nothing is asked for":                   {corev1.PodSpec{Containers: []corev1.Container{with(none, none)}}, corev1.PodQOSBestEffort},
		"zero is nothing":                        {corev1.PodSpec{Containers: []corev1.Container{with(list("0", ""), list("0", ""))}}, corev1.PodQOSBestEffort},
		"limits equal requests":                  {corev1.PodSpec{Containers: []corev1.Container{guaranteed}}, corev1.PodQOSGuaranteed},
		"limits alone, requests by default":      {corev1.PodSpec{Containers: []corev1.Container{with(none, full)}}, corev1.PodQOSGuaranteed},
		"requests alone":                         {corev1.PodSpec{Containers: []corev1.Container{with(full, none)}}, corev1.PodQOSBurstable},
		"a limit of CPU alone":                   {corev1.PodSpec{Containers: []corev1.Container{with(none, list("1", ""))}}, corev1.PodQOSBurstable},
		"limits, and requests of zero":           {corev1.PodSpec{Containers: []corev1.Container{with(list("0", "0"), full)}}, corev1.PodQOSBurstable},
		"a request of memory alone":              {corev1.PodSpec{Containers: []corev1.Container{with(list("", "1Gi"), none)}}, corev1.PodQOSBurstable},
		"less requested than allowed":            {corev1.PodSpec{Containers: []corev1.Container{with(list("500m", "1Gi"), full)}}, corev1.PodQOSBurstable},
		"less memory requested than allowed":     {corev1.PodSpec{Containers: []corev1.Container{with(list("1", "1Mi"), full)}}, corev1.PodQOSBurstable},
		"one of two containers asks for nothing": {corev1.PodSpec{Containers: []corev1.Container{guaranteed, with(none, none)}}, corev1.PodQOSBurstable},
		"an init container that asks for nothing": {
			corev1.PodSpec{Containers: []corev1.Container{guaranteed}, InitContainers: []corev1.Container{with(none, none)}}, corev1.PodQOSBurstable},
		"resources of the pod count instead": {
			corev1.PodSpec{Containers: []corev1.Container{with(none, none)}, Resources: &corev1.ResourceRequirements{Requests: full, Limits: full}},
			corev1.PodQOSGuaranteed},
		"a request of the pod alone": {
			corev1.PodSpec{Containers: []corev1.Container{guaranteed}, Resources: &corev1.ResourceRequirements{Requests: full}}, corev1.PodQOSBurstable},
		"empty resources of the pod do not count": {
			corev1.PodSpec{Containers: []corev1.Container{guaranteed}, Resources: &corev1.ResourceRequirements{}}, corev1.PodQOSGuaranteed},
	} {
		if got := qosClass(&test.spec); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestRestartsOnResizeOnlyForWhatItsPolicyNames(t *testing.T) {
	t.Parallel()
	container := with(list("1", "1Gi"), list("2", "2Gi"))
	container.Name = "app"
	container.ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	}
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "other"}, container}}
	to := func(requests, limits corev1.ResourceList) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
	for name, test := range map[string]struct {
		change Change
		want   bool
	}{
		"another request of memory": {Change{Container: "app", Resources: to(list("1", "512Mi"), list("2", "2Gi"))}, true},
		"another limit of memory":   {Change{Container: "app", Resources: to(list("1", "1Gi"), list("2", "3Gi"))}, true},
		"CPU, which needs none":     {Change{Container: "app", Resources: to(list("3", "1Gi"), list("4", "2Gi"))}, false},
		"nothing":                   {Change{Container: "app", Resources: to(list("1", "1Gi"), list("2", "2Gi"))}, false},
		"an image alone":            {Change{Container: "app", Image: "a"}, false},
		"without a policy":          {Change{Container: "other", Resources: to(list("1", "1Gi"), nil)}, false},
		"no such container":         {Change{Container: "gone", Resources: to(list("1", "1Gi"), nil)}, false},
	} {
		if got := RestartsOnResize(spec, &test.change); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestImagesAndStopsOfAnUpdate(t *testing.T) {
	t.Parallel()
	image, resize := Change{Container: "app", Image: "a:2"}, Change{Container: "other", Resources: &corev1.ResourceRequirements{Limits: list("1", "")}}
	update := Update{Changes: Changes{Containers: []Change{image, resize}}, Stages: []Stage{
		{Kind: StageResize, Changes: []Change{resize}}, {Kind: StageImage, Changes: []Change{image}},
	}}
	if images := update.Images(); len(images) != 1 || images["app"] != "a:2" {
		t.Errorf("images %v, want the image of app", images)
	}
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "other"}}}
	if stops := update.Stops(spec); len(stops) != 1 || stops[0] != "app" {
		t.Errorf("stops %v, want app: what is resized goes on", stops)
	}
}

func TestTemplateIsACopy(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{}
	pod.Labels, pod.Annotations = map[string]string{"a": "1"}, map[string]string{"b": "2"}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "a:1"}}
	template := Template(pod)
	if template.Labels["a"] != "1" || template.Annotations["b"] != "2" || len(template.Spec.Containers) != 1 {
		t.Errorf("template %+v, want labels, annotations and spec of the pod", template)
	}
	template.Labels["a"], template.Annotations["b"], template.Spec.Containers[0].Image = "x", "x", "x"
	if pod.Labels["a"] != "1" || pod.Annotations["b"] != "2" || pod.Spec.Containers[0].Image != "a:1" {
		t.Errorf("a change of the template has changed the pod: %+v", pod)
	}
}

func TestRefusedErrorSaysEveryReason(t *testing.T) {
	t.Parallel()
	e := &RefusedError{Refusals: []Refusal{
		{Field: "spec.x", Reason: ReasonInvalid, Why: "it is wrong"}, {Reason: ReasonStaticPod, Why: "it is static", Instead: recreate},
	}}
	if got, want := e.Error(), "cannot be updated in place: spec.x: it is wrong; it is static; recreate the pod"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !e.Has(ReasonStaticPod) || e.Has(ReasonQoSClass) {
		t.Error("want the reason of the second refusal, and no other")
	}
}
