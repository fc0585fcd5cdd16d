package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/plan"
)

// both is one change after the other.
func both(first, second change.Change) change.Change {
	return func(pod *corev1.PodTemplateSpec) error {
		if err := first(pod); err != nil {
			return err
		}
		return second(pod)
	}
}

// What the plan does not say is as important as what it says: each line is about this pod and this change.
func TestPlanSaysOnlyWhatHolds(t *testing.T) {
	t.Parallel()
	app, level := must(change.Image([]string{"app=app:2"})), must(change.Env(nil, []string{"LEVEL=debug"}))
	cpu := must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=200m"}))
	gated := func(c *cluster) {
		c.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
	}
	owned := func(template func(*corev1.PodTemplateSpec)) func(*cluster) {
		return func(c *cluster) {
			c.pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5d", Controller: new(true)}}
			c.template = plan.Template(c.pod)
			template(c.template)
		}
	}
	recorded := func(state string) func(*cluster) {
		return func(c *cluster) { c.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = state }
	}
	for name, tt := range map[string]struct {
		change    change.Change
		pod       func(*cluster)
		pulls     bool
		want, not []string
	}{
		"nothing stops, in a pod with a gate": {cpu, gated, false, []string{"no container is stopped", "not stopped: app, log"}, []string{"taken out", "its Services send"}},
		"all containers stop":                 {must(change.Image([]string{"*=new:1"})), gated, false, []string{"before app is stopped", "for at least 0 s"}, []string{"not stopped:", "its Services send"}},
		"images are pulled before":            {app, nil, true, []string{"before that node node-1 pulls the new images"}, []string{"while its container is down"}},
		"no image changes":                    {cpu, nil, true, nil, []string{"pull"}},
		"an image and an environment": {both(app, level), nil, false,
			[]string{"container app: set its image to app:2, set level=debug, which its environment refers to; kubelet stops it and starts it again"}, []string{"refit-daemon"}},
		"requests and limits": {must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "memory=1Mi,cpu=200m", Limits: "cpu=1"})), nil, false,
			[]string{"resize container app to requests.cpu=200m requests.memory=1Mi limits.cpu=1\n"}, nil},
		"another change is recorded": {app, recorded(`{"nextContainerImages":{"log":"log:2"},"refit":{}}`), false,
			[]string{"container log: set its image to log:2", "this has what was requested before and has not been begun"}, nil},
		"labels and annotations are": {app, func(c *cluster) {
			c.pod.Annotations["gone"] = "x"
			recorded(`{"refit":{"labels":{"team":"shop"},"annotations":{"gone":null,"a":"1"}}}`)(c)
		}, false, []string{"1. change labels and annotations: team=shop, a=1, gone removed\n", "2. container app"}, []string{"requested before"}},
		"nothing is recorded":             {app, recorded(`{"refit":{}}`), false, nil, []string{"requested before"}},
		"the owner has the image":         {app, owned(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "app:2" }), false, nil, []string{"warning"}},
		"the owner has another image":     {app, owned(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "app:3" }), false, []string{"warning"}, nil},
		"the owner has not the container": {app, owned(func(p *corev1.PodTemplateSpec) { p.Spec.Containers = p.Spec.Containers[1:] }), false, nil, []string{"warning"}},
		"the owner has the variable":      {level, owned(func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"level": "debug"} }), false, nil, []string{"warning"}},
		"the owner has not the variable":  {level, owned(func(p *corev1.PodTemplateSpec) { p.Annotations = nil }), false, []string{"warning"}, nil},
		"the owner has other resources":   {cpu, owned(func(*corev1.PodTemplateSpec) {}), false, []string{"warning"}, nil},
		"the owner has the resources": {cpu, owned(func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("0.2")
		}), false, nil, []string{"warning"}},
		"the owner is not the controller":     {app, func(c *cluster) { c.pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "node-1"}} }, false, nil, []string{"warning"}},
		"a variable that a label has the key": {level, func(c *cluster) { c.pod.Labels = map[string]string{"level": "x"} }, false, []string{"set level=debug"}, []string{"change labels"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &cluster{pod: web()}
			if tt.pod != nil {
				tt.pod(api)
			}
			config := inplacecli.Config{DryRun: true}
			if tt.pulls {
				config.Puller = &puller{}
			}
			said, err := update(t, api, config, tt.change)
			if err != nil || api.writes > 0 || !strings.Contains(said, "pod demo/web on node node-1, dry run: nothing is changed\n  1. ") {
				t.Fatalf("%v, %d writes; said:\n%s", err, api.writes, said)
			}
			for _, words := range tt.want {
				if !strings.Contains(said, words) {
					t.Errorf("%q is not in:\n%s", words, said)
				}
			}
			for _, words := range tt.not {
				if strings.Contains(said, words) {
					t.Errorf("%q is in:\n%s", words, said)
				}
			}
		})
	}
}
