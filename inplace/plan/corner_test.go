package plan_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
)

func barrier(key string) corev1.EnvVar {
	return corev1.EnvVar{Name: v1beta1.EnvContainerBarrier, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: key}}}
}

func TestStagesOfRareChanges(t *testing.T) {
	t.Parallel()
	type pod = corev1.PodTemplateSpec
	images := func(p *pod) { p.Spec.Containers[0].Image, p.Spec.Containers[1].Image = "app:2", "log:2" }
	add := func(p *pod, container int, env ...corev1.EnvVar) {
		p.Spec.Containers[container].Env = append(p.Spec.Containers[container].Env, env...)
	}
	for name, tt := range map[string]staged{
		"memory": {change: func(p *pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
		}, want: []string{"Resize app"}},
		"a request of nothing":   {change: func(p *pod) { p.Spec.Containers[1].Resources = plantest.Resources("0", "") }, want: []string{"Resize log"}},
		"a request of all of it": {change: func(p *pod) { p.Spec.Containers[0].Resources = plantest.Resources("200m", "200m") }, want: []string{"Resize app"}},
		"a label that a native sidecar refers to": {
			start: func(p *pod) {
				p.Labels["zone"] = "a"
				p.Spec.InitContainers[1].Env = []corev1.EnvVar{plantest.MetadataEnv("ZONE", "metadata.labels['zone']")}
			},
			change: func(p *pod) { p.Labels["zone"] = "b" }, want: []string{"Restart mesh"},
		},
		"a label that an init container has had": {
			start: func(p *pod) {
				p.Labels["zone"] = "a"
				p.Spec.InitContainers[0].Env = []corev1.EnvVar{plantest.MetadataEnv("ZONE", "metadata.labels['zone']")}
			},
			change: func(p *pod) { p.Labels["zone"] = "b" }, want: []string{"Metadata"},
		},
		"a label without a value":               {change: func(p *pod) { p.Labels["plain"] = "" }, want: []string{"Metadata"}},
		"an annotation with the key of a label": {change: func(p *pod) { p.Annotations["tier"] = "x" }, want: []string{"Metadata"}},
		"a label with the key of an annotation": {change: func(p *pod) { p.Labels["config"] = "x" }, want: []string{"Metadata"}},
		"a later container that shares a label comes": {
			start:  func(p *pod) { add(p, 1, plantest.MetadataEnv("TIER", "metadata.labels['tier']")) },
			change: func(p *pod) { images(p); p.Labels["tier"] = "db" }, options: plan.Options{Order: [][]string{{"log"}, {"app"}}},
			want: []string{"Image app,log"},
		},
		"an environment and an image that is on the node, in a pod that is not restarted": {
			start:   func(p *pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever },
			change:  func(p *pod) { p.Spec.Containers[0].Image, p.Labels["tier"] = "app:2", "db" },
			options: plan.Options{ImagesPresent: true}, want: []string{"Image app"},
		},
		"a launch priority that is no number is as the highest": {
			start: func(p *pod) { add(p, 0, barrier("p_x")); add(p, 1, barrier("p_5")) }, change: images, want: []string{"Image app,log"},
		},
		"a launch priority under another key is as the highest": {
			start: func(p *pod) { add(p, 0, barrier("1")); add(p, 1, barrier("p_5")) }, change: images, want: []string{"Image app,log"},
		},
		"variables that are no launch priority": {
			start: func(p *pod) {
				other := barrier("p_1")
				other.Name = "OTHER"
				add(p, 0, other, corev1.EnvVar{Name: v1beta1.EnvContainerBarrier}, plantest.MetadataEnv(v1beta1.EnvContainerBarrier, "metadata.name"))
				add(p, 1, barrier("p_5"))
			},
			change: images, want: []string{"Image app,log"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.check(t)
		})
	}
}

func TestInitContainersAndContainersThatMayNotComeBackAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		start, change func(*corev1.PodSpec)
		reason        plan.Reason
	}{
		"resources of an init container": {change: func(s *corev1.PodSpec) { s.InitContainers[0].Resources = plantest.Resources("1", "") }, reason: plan.ReasonInitContainer},
		"an init container with a policy of its own": {
			start: func(s *corev1.PodSpec) {
				s.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyOnFailure)
			},
			change: func(s *corev1.PodSpec) { s.InitContainers[0].Image = "setup:2" }, reason: plan.ReasonInitContainer,
		},
		"one that ends with 0 when it is stopped": {
			start:  func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyOnFailure },
			change: func(s *corev1.PodSpec) { s.Containers[0].Image = "app:2" }, reason: plan.ReasonRestartPolicyNever,
		},
		"one that is not restarted after SIGTERM": {start: restartsOnly(0, 137), change: func(s *corev1.PodSpec) { s.Containers[0].Image = "app:2" }, reason: plan.ReasonRestartPolicyNever},
		"one that is not restarted after SIGKILL": {start: restartsOnly(0, 143), change: func(s *corev1.PodSpec) { s.Containers[0].Image = "app:2" }, reason: plan.ReasonRestartPolicyNever},
		"one that is not restarted after its end": {start: restartsOnly(137, 143), change: func(s *corev1.PodSpec) { s.Containers[0].Image = "app:2" }, reason: plan.ReasonRestartPolicyNever},
		"one that is restarted after all of them": {start: restartsOnly(0, 137, 143), change: func(s *corev1.PodSpec) { s.Containers[0].Image = "app:2" }},
	} {
		old := plantest.Template()
		if tt.start != nil {
			tt.start(&old.Spec)
		}
		updated := old.DeepCopy()
		tt.change(&updated.Spec)
		_, err := plan.New(old, updated, plan.Options{})
		refused := (*plan.RefusedError)(nil)
		if ok := errors.As(err, &refused); ok != (tt.reason != "") || ok && !refused.Has(tt.reason) {
			t.Errorf("%s: %v, want %q", name, err, tt.reason)
		}
	}
}

// restartsOnly has container app restarted after these exit codes.
func restartsOnly(codes ...int32) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyNever)
		s.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestart,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: codes},
		}}
	}
}

// Like the defaults of the API server, which do not cover other resources.
func TestLimitsOfCPUAndMemoryAreRequestedToo(t *testing.T) {
	t.Parallel()
	limits := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"), "example.com/gpu": resource.MustParse("1")}
	stored := corev1.ResourceRequirements{Limits: limits}
	plan.AsStored(&stored)
	if diff := cmp.Diff(corev1.ResourceList{"cpu": limits["cpu"], "memory": limits["memory"]}, stored.Requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	fine := plantest.Resources("100.5m", "")
	plan.AsStored(&fine)
	if diff := cmp.Diff(plantest.Resources("101m", ""), fine); diff != "" {
		t.Errorf("rounded (-want +got):\n%s", diff)
	}
}

// Whoever plans goes on with the pod as it is.
func TestPlanChangesNeitherOfThePods(t *testing.T) {
	t.Parallel()
	old, updated := plantest.Template(), plantest.Template()
	old.Spec.Containers[0].Resources, updated.Spec.Containers[0].Resources = plantest.Resources("", "1.0005"), plantest.Resources("", "2.0005")
	updated.Spec.Containers[0].Image = "app:2"
	before, after := old.DeepCopy(), updated.DeepCopy()
	if _, err := plan.New(old, updated, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*corev1.PodTemplateSpec{before, after}, []*corev1.PodTemplateSpec{old, updated}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Only stages that stop containers wait for others: resources and metadata are written at once.
func TestStagesThatStopNothingAreNotHeldBack(t *testing.T) {
	t.Parallel()
	changes := []plan.Change{{Container: "app"}}
	held := func(*plan.Change) bool { return true }
	for kind, stays := range map[plan.StageKind]bool{plan.StageResize: true, plan.StageMetadata: true, plan.StageImage: false, plan.StageRestart: false} {
		stage := plan.Stage{Kind: kind, Changes: changes}
		if got := stage.Without(held); (got != nil) != stays {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	images := plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "app", Image: "a"}, {Container: "log", Image: "l"}, {Container: "mesh", Image: "m"}}}
	if free := images.Without(func(c *plan.Change) bool { return c.Container == "log" }); free == nil || !slices.Equal(free.Containers(), []string{"app", "mesh"}) || free.Kind != plan.StageImage {
		t.Errorf("without one of three: %+v", free)
	}
}

func TestAResizeStopsOnlyContainersWhosePolicySaysSo(t *testing.T) {
	t.Parallel()
	old := plantest.Template()
	updated := old.DeepCopy()
	updated.Spec.Containers[0].Resources = plantest.Resources("200m", "")
	update, err := plan.New(old, updated, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := update.Stops(&old.Spec); len(got) > 0 {
		t.Errorf("%v are stopped", got)
	}
	old.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
	if got := update.Stops(&old.Spec); !slices.Equal(got, []string{"app"}) {
		t.Errorf("%v are stopped, want app", got)
	}
}
