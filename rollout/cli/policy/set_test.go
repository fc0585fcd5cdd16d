package policy_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/policy"
	"github.com/refit-project/refit/test/kit/golden"
)

func TestSetCreatesAPolicyAndSaysThatItStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.config.Options = &policy.Options{MaxUnavailable: new(intstr.FromString("50%"))}
	err := policy.Set(t.Context(), f.config, web, image("app:3"))
	f.expects(t, err, console.ExitDone, "app: image app:2 -> app:3", "2 pods are updated in place, at most 1 unavailable", "InPlaceUpdatePolicy web created. It stays",
		"kubectl delete inplaceupdatepolicy web --namespace=shop", "2 of 2 pods have the template and are available")
	if is := f.deployment(t).Spec.Template.Spec.Containers[0].Image; is != "app:3" {
		t.Errorf("image %s", is)
	}
	all := f.policies(t)
	if len(all) != 1 || all[0].Spec.TargetRef.Kind != "Deployment" || all[0].Spec.TargetRef.Name != "web" || all[0].Spec.MaxUnavailable.String() != "50%" {
		t.Errorf("policies %+v", all)
	}
}

func TestSetUsesThePolicyOfTheWorkload(t *testing.T) {
	t.Parallel()
	f := newFixture(t, existing(nil))
	f.expects(t, policy.Set(t.Context(), f.config, web, image("app:3")), console.ExitDone)
	f.config.Options = &policy.Options{MaxUnavailable: new(intstr.FromInt32(2)), Canary: new(intstr.FromInt32(1))}
	f.expects(t, policy.Set(t.Context(), f.config, policy.Target{Name: "gently"}, image("app:4")), console.ExitDone,
		`InPlaceUpdatePolicy gently changed, for this and later updates: {"spec":{"maxUnavailable":2,"steps":[{"pause":{},"pods":1}]}}`)
	f.config.Options = &policy.Options{NoCanary: true}
	f.expects(t, policy.Set(t.Context(), f.config, web, image("app:5")), console.ExitDone, `changed, for this and later updates: {"spec":{"steps":null}}`)
	if all := f.policies(t); len(all) != 1 || all[0].Spec.MaxUnavailable.String() != "2" || all[0].Spec.Steps != nil {
		t.Errorf("policies %+v", all)
	}
}

// The controller of the Deployment would replace the pods, whatever changes.
func TestSetRefusesAChangeInTheMiddleOfARolloutByTheDeployment(t *testing.T) {
	t.Parallel()
	for _, dryRun := range []bool{false, true} {
		third := replicaSet("web-3", "app:2", "3")
		third.Spec.Replicas = new(int32(1))
		f := newFixture(t, third)
		f.config.DryRun = dryRun
		err := policy.Set(t.Context(), f.config, web, image("app:3"))
		f.expects(t, err, console.ExitRefused, "in the middle of a rollout of its own", "kubectl rollout status deployment/web --namespace=shop", "--allow-replacement")
		if is := f.deployment(t).Spec.Template.Spec.Containers[0].Image; is != "app:2" {
			t.Errorf("image %s", is)
		}
	}
}

// clock is the time before a line.
var clock = regexp.MustCompile(`\[ *[0-9.]+s\]`)

func TestDryRunSaysWhatHappensToEachPodAndWritesNothing(t *testing.T) {
	t.Parallel()
	qos := func(t *corev1.PodTemplateSpec) error {
		for i := range t.Spec.Containers {
			all := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
			t.Spec.Containers[i].Resources = corev1.ResourceRequirements{Requests: all, Limits: all}
		}
		return nil
	}
	cpu := func(t *corev1.PodTemplateSpec) error {
		t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("200m")}
		return nil
	}
	for name, tc := range map[string]struct {
		change policy.Change
		code   int
	}{
		"image": {image("app:3"), console.ExitDone}, "resize": {cpu, console.ExitDone}, "replaced": {qos, console.ExitRefused}, "nothing": {image("app:2"), console.ExitDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.config.DryRun, f.config.Options = true, &policy.Options{Canary: new(intstr.FromString("10%"))}
			err := policy.Set(t.Context(), f.config, web, tc.change)
			f.expects(t, err, tc.code)
			said := f.out.String()
			if err != nil {
				said += err.Error() + "\n"
			}
			golden.Check(t, "testdata/dryrun-"+name+".txt", clock.ReplaceAllString(said, "[   0.0s]"))
			if d := f.deployment(t); d.Generation != 2 || len(f.policies(t)) > 0 {
				t.Errorf("generation %d, policies %v", d.Generation, f.policies(t))
			}
		})
	}
}

// The template is possible in place, so nobody replaces the pod.
func TestDryRunNamesAPodThatHasToBeDeleted(t *testing.T) {
	t.Parallel()
	limited := pod("web-2-c")
	limited.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
	f := newFixture(t, limited, existing(func(p *v1alpha1.InPlaceUpdatePolicy) {
		p.Status.Update = &v1alpha1.TemplateUpdate{Containers: []v1alpha1.UpdatedContainer{{Name: "app", Resources: true, ResourceNames: []string{"limits.cpu"}}}}
	}))
	f.config.DryRun = true
	err := policy.Set(t.Context(), f.config, web, image("app:3"))
	f.expects(t, err, console.ExitRefused, "kubectl delete pod web-2-c --namespace=shop")
	if err != nil {
		golden.Check(t, "testdata/dryrun-fails.txt", f.out.String()+err.Error()+"\n")
	}
}

func TestWhatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	variable := func(t *corev1.PodTemplateSpec) error {
		t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
		return nil
	}
	byOwner := existing(func(p *v1alpha1.InPlaceUpdatePolicy) { p.Spec.HoldPolicy = v1alpha1.HoldByOwner })
	only := existing(func(p *v1alpha1.InPlaceUpdatePolicy) { p.Spec.PodUpdatePolicy = v1alpha1.PodUpdateInPlaceOnly })
	for name, tc := range map[string]struct {
		f      func(*fixture)
		policy *v1alpha1.InPlaceUpdatePolicy
		change policy.Change
		words  []string
	}{
		"no policy":          {func(f *fixture) { f.config.CreatePolicy = false }, nil, image("app:3"), []string{"no InPlaceUpdatePolicy for deployment/web in namespace shop"}},
		"not in place":       {nil, nil, variable, []string{"spec.containers[0].env", "--allow-replacement"}},
		"in place only":      {func(f *fixture) { f.config.AllowReplacement = true }, only, variable, []string{"podUpdatePolicy InPlaceOnly"}},
		"by the API server":  {func(f *fixture) { f.err = apierrors.NewBadRequest("no such image") }, nil, image("app:3"), []string{"no such image"}},
		"by the change":      {nil, nil, func(*corev1.PodTemplateSpec) error { return console.ErrUsage }, []string{"usage"}},
		"a policy for it":    {func(f *fixture) { f.accepts = nil }, existing(notAccepted), image("app:3"), []string{"is not accepted: Conflicted", "the template has not been changed"}},
		"not paused":         {nil, byOwner, image("app:3"), []string{"would be replaced", "kubectl rollout pause deployment/web --namespace=shop"}},
		"paused by an owner": {func(f *fixture) { f.paused = true }, nil, image("app:3"), []string{"its owner has paused it", "kubectl rollout resume deployment/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fixture
			if tc.policy == nil {
				f = newFixture(t)
			} else {
				f = newFixture(t, tc.policy.DeepCopy())
			}
			if tc.f != nil {
				tc.f(f)
			}
			if d := f.deployment(t); f.paused {
				d.Spec.Paused = true
				if err := f.config.API.Update(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			f.expects(t, policy.Set(t.Context(), f.config, web, tc.change), console.ExitRefused, tc.words...)
			if d := f.deployment(t); d.Spec.Template.Spec.Containers[0].Image != "app:2" || tc.policy == nil && len(f.policies(t)) > 0 {
				t.Errorf("image %s, policies %v", d.Spec.Template.Spec.Containers[0].Image, f.policies(t))
			}
		})
	}
}

func notAccepted(p *v1alpha1.InPlaceUpdatePolicy) {
	says(&p.Status, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflicted, "older is for the same workload and older")
}

func TestAllowedReplacementChangesTheTemplate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, existing(nil))
	f.config.AllowReplacement = true
	err := policy.Set(t.Context(), f.config, web, func(t *corev1.PodTemplateSpec) error {
		t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
		return nil
	})
	f.expects(t, err, console.ExitDone, "2 pods would be replaced by the controller of the Deployment")
	if len(f.deployment(t).Spec.Template.Spec.Containers[0].Env) != 1 {
		t.Error("not changed")
	}
}

// The API server never holds a restart, so the command must not wait for that.
func TestAllowedRestartIsNotHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, existing(nil))
		f.config.AllowReplacement, f.holds = true, false
		err := policy.Set(t.Context(), f.config, web, func(t *corev1.PodTemplateSpec) error {
			t.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
			return nil
		})
		f.expects(t, err, console.ExitDone, "2 pods would be replaced")
		if f.deployment(t).Spec.Template.Annotations == nil {
			t.Error("not changed")
		}
	})
}

func TestSetEndsAsTheUpdateDoes(t *testing.T) {
	t.Parallel()
	failure := func(s *v1alpha1.InPlaceUpdatePolicyStatus) {
		s.FailedPods, s.Failures = 1, []v1alpha1.PodFailure{{Pod: "web-2-a", Reason: "ImagePullBackOff", Message: "not found"}}
	}
	pause := func(s *v1alpha1.InPlaceUpdatePolicyStatus) { s.Step, s.StepTime = new(int32(0)), new(metav1.Now()) }
	for name, tc := range map[string]struct {
		canary bool
		ends   func(*v1alpha1.InPlaceUpdatePolicyStatus)
		code   int
		words  []string
	}{
		"failed": {false, progresses(metav1.ConditionFalse, v1alpha1.ReasonPodsFailed, "1 pod has failed", failure), console.ExitFailed, []string{
			"pod web-2-a: ImagePullBackOff: not found", "PodsFailed: 1 pod has failed", "kubectl refit why web-2-a --namespace=shop", "kubectl refit rollout undo deployment/web --namespace=shop",
		}},
		"not in place": {false, progresses(metav1.ConditionFalse, v1alpha1.ReasonNotInPlace, "no"), console.ExitFailed, []string{"podUpdatePolicy", "rollout undo"}},
		"undone": {false, progresses(metav1.ConditionTrue, v1alpha1.ReasonUndone, "", func(s *v1alpha1.InPlaceUpdatePolicyStatus) { s.UndoneRevision = "r3" }), console.ExitFailed,
			[]string{"the former one was written to deployment/web", "kubectl refit rollout status deployment/web"}},
		"canary": {true, progresses(metav1.ConditionTrue, v1alpha1.ReasonStep, "step 1 of 1", pause), console.ExitDone, []string{
			"first 1, until that is promoted", "1 of 2 pods have the template and are available; the update pauses", "kubectl refit rollout promote deployment/web --namespace=shop",
		}},
		"partition": {false, progresses(metav1.ConditionTrue, v1alpha1.ReasonPartition, "spec.partition leaves 1 pod as it is"), console.ExitDone, []string{"1 of 2 pods", "leaves 1 pod as it is"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.ends = tc.ends
			if tc.canary {
				f.config.Options = &policy.Options{Canary: new(intstr.FromInt32(1))}
			}
			f.expects(t, policy.Set(t.Context(), f.config, web, image("app:3")), tc.code, tc.words...)
		})
	}
}

func TestWithoutWaitItSaysHowToFollow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ends, f.config.Wait = nil, false
	f.expects(t, policy.Set(t.Context(), f.config, web, image("app:3")), console.ExitDone, "kubectl refit rollout status deployment/web --namespace=shop")
}

// Its pods would be replaced.
func TestTemplateIsNotChangedIfTheAPIServerDoesNotHoldTheWorkload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		f    func(*fixture)
		word string
	}{
		"not held":             {func(f *fixture) { f.holds = false }, "the API server does not hold deployment/web"},
		"not accepted":         {func(f *fixture) { f.accepts = nil }, "refit-manager has not accepted InPlaceUpdatePolicy web within 30s"},
		"not labelled":         {func(f *fixture) { f.accepts = labelsLater }, "refit-manager has not accepted InPlaceUpdatePolicy web within 30s"},
		"a feature turned off": {func(f *fixture) { f.accepts = nil }, "does not process InPlaceUpdatePolicies (manager.features.inPlaceUpdates"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				tc.f(f)
				f.expects(t, policy.Set(t.Context(), f.config, web, image("app:3")), console.ExitRefused, tc.word, "the template has not been changed", "InPlaceUpdatePolicy web is deleted again")
				if f.deployment(t).Generation != 2 || len(f.policies(t)) > 0 {
					t.Errorf("policies %v", f.policies(t))
				}
			})
		})
	}
}

func TestTimeoutAndInterruptLeaveTheUpdateAndSayHowToFollowIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		words := []string{"the update continues", "last:      Updating: 1 pod is left", "kubectl refit rollout status deployment/web", "kubectl refit rollout pause deployment/web"}
		f := newFixture(t)
		f.ends, f.config.Timeout = progresses(metav1.ConditionTrue, v1alpha1.ReasonUpdating, "1 pod is left"), time.Minute
		f.expects(t, policy.Set(t.Context(), f.config, web, image("app:3")), console.ExitTimeout, words...)
		f = newFixture(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		updating := progresses(metav1.ConditionTrue, v1alpha1.ReasonUpdating, "1 pod is left")
		f.ends = func(s *v1alpha1.InPlaceUpdatePolicyStatus) {
			updating(s)
			time.AfterFunc(time.Second, func() { cancel(errors.New("Ctrl-C")) })
		}
		f.expects(t, policy.Set(ctx, f.config, web, image("app:3")), console.ExitInterrupted, words...)
	})
}
