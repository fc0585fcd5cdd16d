package change_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
	"github.com/refit-project/refit/internal/console"
)

func pod(template *corev1.PodTemplateSpec) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
}

// imagesOf returns the images of the containers, in the order of the pod: setup, mesh, app, log.
func imagesOf(pod *corev1.PodTemplateSpec) string {
	var images []string
	for _, container := range change.All(pod) {
		images = append(images, container.Image)
	}
	return strings.Join(images, " ")
}

func TestImagesOfTheContainersThatAreNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pairs []string
		want  string // empty: refused
	}{
		"one":                          {[]string{"app=a:2"}, "setup:1 mesh:1 a:2 log:1"},
		"two":                          {[]string{"app=a:2", "log=l:2"}, "setup:1 mesh:1 a:2 l:2"},
		"a native sidecar":             {[]string{"mesh=m:2"}, "setup:1 m:2 app:1 log:1"},
		"an init container":            {[]string{"setup=s:2"}, "s:2 mesh:1 app:1 log:1"},
		"all that run":                 {[]string{"*=x:2"}, "setup:1 x:2 x:2 x:2"},
		"all, then one":                {[]string{"*=x:2", "app=a:2"}, "setup:1 x:2 a:2 x:2"},
		"an image with a digest":       {[]string{"app=a@sha256:" + strings.Repeat("0a", 32)}, "setup:1 mesh:1 a@sha256:" + strings.Repeat("0a", 32) + " log:1"},
		"a name with spaces around it": {[]string{" app =a:2"}, "setup:1 mesh:1 a:2 log:1"},
		"none":                         {nil, ""},
		"no name":                      {[]string{"=a:2"}, ""},
		"no image":                     {[]string{"app"}, ""},
		"an empty image":               {[]string{"app="}, ""},
		"no reference":                 {[]string{"app=A:2"}, ""},
		"another container":            {[]string{"app=a:2", "gone=a:2"}, ""},
	} {
		template := plantest.Template()
		apply, err := change.Image(tt.pairs)
		if err == nil {
			err = apply(template)
		}
		if (err == nil) != (tt.want != "") || err == nil && imagesOf(template) != tt.want || err != nil && !errors.Is(err, console.ErrUsage) {
			t.Errorf("%s: %v, images %s", name, err, imagesOf(template))
		}
	}
}

// What is not named stays: a request of memory is not lost because CPU is changed.
func TestQuantitiesThatAreNamedAreChanged(t *testing.T) {
	t.Parallel()
	list := func(pairs ...string) corev1.ResourceList {
		made := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			made[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return made
	}
	for name, tt := range map[string]struct {
		sizes    change.Sizes
		app, log corev1.ResourceRequirements
		fails    string
	}{
		"requests of one": {sizes: change.Sizes{Containers: []string{"log"}, Requests: "cpu=1,memory=1Gi"}, app: plantest.Resources("100m", ""),
			log: corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi")}},
		"limits, beside requests": {sizes: change.Sizes{Containers: []string{"app"}, Limits: "cpu=2"}, app: plantest.Resources("100m", "2")},
		"both": {sizes: change.Sizes{Containers: []string{"app"}, Requests: "memory=1Mi", Limits: "memory=2Mi"},
			app: corev1.ResourceRequirements{Requests: list("cpu", "100m", "memory", "1Mi"), Limits: list("memory", "2Mi")}},
		"of all that run":   {sizes: change.Sizes{Requests: "cpu=300m"}, app: plantest.Resources("300m", ""), log: plantest.Resources("300m", "")},
		"nothing":           {fails: "name requests, limits or both"},
		"no quantity":       {sizes: change.Sizes{Requests: "cpu=much"}, fails: "usage: --requests: cpu=much: want a quantity, such as 500m or 2"},
		"no limit":          {sizes: change.Sizes{Requests: "cpu=1", Limits: "cpu"}, fails: `usage: --limits: "cpu": want RESOURCE=QUANTITY`},
		"no resource":       {sizes: change.Sizes{Requests: "=1"}, fails: `usage: --requests: "=1": want RESOURCE=QUANTITY`},
		"another container": {sizes: change.Sizes{Containers: []string{"gone"}, Requests: "cpu=1"}, fails: `no container "gone"`},
	} {
		template := plantest.Template()
		apply, err := change.Resources(tt.sizes)
		if err == nil {
			err = apply(template)
		}
		if (err != nil) != (tt.fails != "") || err != nil && (!errors.Is(err, console.ErrUsage) || !strings.Contains(err.Error(), tt.fails) || strings.Contains(console.Message(err), "usage")) {
			t.Errorf("%s: %v", name, err)
		}
		if tt.fails != "" {
			continue
		}
		got := []corev1.ResourceRequirements{template.Spec.Containers[0].Resources, template.Spec.Containers[1].Resources}
		if diff := cmp.Diff([]corev1.ResourceRequirements{tt.app, tt.log}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(template.Spec.InitContainers[0].Resources.Requests) > 0 {
			t.Errorf("%s: an init container is changed", name)
		}
	}
}

func TestVariablesComeFromLabelsAndAnnotations(t *testing.T) {
	t.Parallel()
	fixed := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[1].Env = append(p.Spec.Containers[1].Env, corev1.EnvVar{Name: "TIER", Value: "x"})
	}
	for name, tt := range map[string]struct {
		containers, pairs []string
		before            func(*corev1.PodTemplateSpec)
		tier, config      string
		says              string
	}{
		"a label":                 {nil, []string{"TIER=db"}, nil, "db", "one", ""},
		"an annotation":           {nil, []string{"CONFIG=two"}, nil, "web", "two", ""},
		"both":                    {nil, []string{"CONFIG=two", "TIER=db"}, nil, "db", "two", ""},
		"an empty value":          {nil, []string{"TIER="}, nil, "", "one", ""},
		"a value with =":          {nil, []string{"TIER=a=b"}, nil, "a=b", "one", ""},
		"of a container":          {[]string{"app"}, []string{"TIER=db"}, nil, "db", "one", ""},
		"of one of two":           {[]string{"log", "app"}, []string{"TIER=db"}, nil, "db", "one", ""},
		"of a pod without labels": {nil, []string{"TIER=db"}, func(p *corev1.PodTemplateSpec) { p.Labels = nil }, "db", "one", ""},
		"of none":                 {nil, []string{"NONE=x"}, nil, "web", "one", "no container has this variable; variables cannot be added"},
		"of another container":    {[]string{"log"}, []string{"TIER=db"}, nil, "web", "one", "container log does not have this variable"},
		"of neither":              {[]string{"log", "mesh"}, []string{"TIER=db"}, nil, "web", "one", "containers log, mesh do not have this variable"},
		"with a value of its own": {[]string{"log"}, []string{"TIER=db"}, fixed, "web", "one", "its value in container log comes neither from a label nor from an annotation of the pod, and cannot be changed in a running pod; " +
			"recreate the pod, and let the variable refer to an annotation"},
		"with a value, of whichever": {nil, []string{"FIXED=y"}, func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[1].Env = append(p.Spec.Containers[1].Env, corev1.EnvVar{Name: "FIXED", Value: "x"})
		}, "web", "one", "its value in container log comes neither"},
		"with one in another container":  {[]string{"mesh"}, []string{"TIER=db"}, fixed, "web", "one", "container mesh does not have this variable"},
		"of a container that is not one": {[]string{"gone"}, []string{"TIER=db"}, nil, "web", "one", `no container "gone"; it has app, log, mesh, setup`},
		"none at all":                    {nil, nil, nil, "web", "one", "want at least one NAME=VALUE"},
		"no value":                       {nil, []string{"TIER"}, nil, "web", "one", `"TIER": want NAME=VALUE`},
	} {
		template := plantest.Template()
		if tt.before != nil {
			tt.before(template)
		}
		apply, err := change.Env(tt.containers, tt.pairs)
		if err == nil {
			err = apply(template)
		}
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
		if template.Labels["tier"] != tt.tier || template.Annotations["config"] != tt.config {
			t.Errorf("%s: labels %v, annotations %v", name, template.Labels, template.Annotations)
		}
	}
}

// A command ends when what it has asked for holds, also what the pod had before.
func TestWhatWasAskedForIsComparedWithThePod(t *testing.T) {
	t.Parallel()
	apply := func(pod *corev1.PodTemplateSpec) error {
		for _, parse := range []func() (change.Change, error){
			func() (change.Change, error) { return change.Image([]string{"app=app:2", "mesh=mesh:1"}) },
			func() (change.Change, error) {
				return change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=100.5m", Limits: "memory=1Gi"})
			},
			func() (change.Change, error) { return change.Env(nil, []string{"TIER=db", "CONFIG=one"}) },
		} {
			one, err := parse()
			if err != nil {
				return err
			}
			if err := one(pod); err != nil {
				return err
			}
		}
		return nil
	}
	template := plantest.Template()
	asked, err := change.Change(apply).Asked(pod(template))
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Changes{
		Containers: []plan.Change{
			{Container: "mesh", Sidecar: true, Image: "mesh:1"},
			{Container: "app", Image: "app:2", Resources: &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("101m")}, Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")},
			}},
		},
		Labels: map[string]*string{"tier": new("db")}, Annotations: map[string]*string{"config": new("one")},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := change.Restarted(pod(template), asked); !slices.Equal(got, []string{"mesh", "app", "log"}) || !change.Resizes(asked) {
		t.Errorf("restarted %v, resizes %t", got, change.Resizes(asked))
	}
	different := []string{
		"container app has image app:1, not app:2", "container app has requests.cpu=100m, not 101m", "container app has limits.memory=0, not 1Gi", `label tier is "web", not "db"`,
	}
	if diff := cmp.Diff(different, change.Different(template, asked)); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if err := apply(template); err != nil {
		t.Fatal(err)
	}
	template.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("0.101")
	if got := change.Different(template, asked); len(got) > 0 {
		t.Errorf("afterwards: %q", got)
	}
	delete(template.Annotations, "config")
	template.Spec.InitContainers = nil
	if diff := cmp.Diff([]string{`annotation config is "", not "one"`}, change.Different(template, asked)); diff != "" {
		t.Errorf("without them (-want +got):\n%s", diff)
	}
	sizes, err := change.Resources(change.Sizes{Containers: []string{"log"}, Requests: "memory=1Mi,cpu=1"})
	if err != nil {
		t.Fatal(err)
	}
	if asked, err = sizes.Asked(pod(plantest.Template())); err != nil || len(asked.Containers) != 1 || asked.Containers[0].Image != "" {
		t.Errorf("resources alone: %+v, %v", asked, err)
	}
	different = []string{"container log has requests.cpu=0, not 1", "container log has requests.memory=0, not 1Mi"}
	if diff := cmp.Diff(different, change.Different(plantest.Template(), asked)); diff != "" {
		t.Errorf("resources alone (-want +got):\n%s", diff)
	}
	image, err := change.Image([]string{"app=app:2"})
	if err != nil {
		t.Fatal(err)
	}
	if asked, err := image.Asked(&corev1.Pod{}); !errors.Is(err, console.ErrUsage) {
		t.Errorf("of a pod without the container: %+v, %v", asked, err)
	}
	only, err := image.Asked(pod(plantest.Template()))
	if got := change.Restarted(pod(plantest.Template()), only); err != nil || !slices.Equal(got, []string{"app"}) || change.Resizes(only) {
		t.Errorf("an image alone: restarted %v, %v", got, err)
	}
}

func TestContainersThatRun(t *testing.T) {
	t.Parallel()
	template := plantest.Template()
	template.Spec.InitContainers = append(template.Spec.InitContainers, corev1.Container{Name: "never", RestartPolicy: new(corev1.ContainerRestartPolicyNever)})
	var names []string
	for _, container := range change.Running(template) {
		names = append(names, container.Name)
	}
	if !slices.Equal(names, []string{"mesh", "app", "log"}) {
		t.Errorf("%v", names)
	}
}

func TestOrderOfContainersIsReadInGroups(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([][]string{{"a", "b"}, {"c"}}, change.Groups([]string{"a,b", "c"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := change.Groups(nil); got != nil {
		t.Errorf("%v", got)
	}
}
