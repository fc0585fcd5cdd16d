package policy_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	"github.com/refit-project/refit/rollout/cli/policy"
)

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"deployment/web": "deployment/web", "deploy/web": "deployment/web", "sts/db": "statefulset/db", "ds/agent": "daemonset/agent",
		"inplaceupdatepolicy/web": "inplaceupdatepolicy/web", "iup/web": "inplaceupdatepolicy/web",
		"deployment.apps/web": "deployment/web", "inplaceupdatepolicy.refit.dev/web": "inplaceupdatepolicy/web",
		"statefulset.apps.kruise.io/db": "", "inplaceupdatepolicy.apps/web": "",
		"": "", "web": "", "pod/web": "", "cloneset/web": "", "replicaset/web": "", "job/web": "", "iup/": "",
	} {
		target, err := policy.ParseTarget(text)
		if (err == nil) != (want != "") || err == nil && target.String() != want || err != nil && console.ExitCode(err) != console.ExitRefused {
			t.Errorf("%q: %v, %v", text, target, err)
		}
	}
}

// steps gives a policy two steps, the first of which pauses for revision r3.
func steps(p *v1alpha1.InPlaceUpdatePolicy) {
	p.Spec.Steps = []v1alpha1.RolloutStep{{Pods: intstr.FromInt32(1), Pause: &v1alpha1.StepPause{}}, {Pods: intstr.FromString("50%"), Pause: &v1alpha1.StepPause{}}}
	progresses(metav1.ConditionTrue, v1alpha1.ReasonStep, "step 1 of 2: 1 pod with the new template", func(s *v1alpha1.InPlaceUpdatePolicyStatus) {
		s.Step, s.StepTime = new(int32(0)), new(metav1.Now())
	})(&p.Status)
}

// in is a policy with a state of its update.
func in(is metav1.ConditionStatus, reason, message string) func(*v1alpha1.InPlaceUpdatePolicy) {
	return func(p *v1alpha1.InPlaceUpdatePolicy) { progresses(is, reason, message)(&p.Status) }
}

func TestStatusSaysHowAnUpdateStandsAndWhatToDo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy func(*v1alpha1.InPlaceUpdatePolicy)
		code   int // when it is followed
		words  []string
	}{
		"done":      {nil, console.ExitDone, []string{"[####################] 2 of 2 pods updated and ready, 0 being updated, 0 failed"}},
		"recreated": {func(p *v1alpha1.InPlaceUpdatePolicy) { p.Status.RecreatedPods = 1 }, console.ExitDone, []string{", 1 recreated"}},
		"updating":  {in(metav1.ConditionTrue, v1alpha1.ReasonUpdating, "1 pod is left"), console.ExitTimeout, []string{"[##########----------] 1 of 2 pods updated and ready", "Updating: 1 pod is left"}},
		"a step":    {steps, console.ExitTimeout, []string{"step 1 of 2", "kubectl refit rollout promote deployment/web --namespace=shop"}},
		"paused": {func(p *v1alpha1.InPlaceUpdatePolicy) {
			in(metav1.ConditionUnknown, v1alpha1.ReasonPaused, "spec.paused is set")(p)
			p.Spec.Paused = true
		}, console.ExitTimeout, []string{"kubectl refit rollout resume deployment/web --namespace=shop"}},
		"paused by its owner": {in(metav1.ConditionUnknown, v1alpha1.ReasonPaused, "the owner"), console.ExitTimeout, []string{"kubectl rollout resume deployment/web"}},
		"failed":              {in(metav1.ConditionFalse, v1alpha1.ReasonPodsFailed, "1 pod has failed"), console.ExitFailed, []string{"PodsFailed: 1 pod has failed", "kubectl refit rollout undo deployment/web"}},
		"no image":            {in(metav1.ConditionFalse, v1alpha1.ReasonImagePullFailed, "image app:3: not found"), console.ExitFailed, []string{"ImagePullFailed: image app:3: not found", "kubectl refit rollout undo deployment/web", "kubectl refit set image deployment/web"}},
		"not accepted":        {notAccepted, console.ExitFailed, []string{"Conflicted: older", "kubectl delete inplaceupdatepolicy gently --namespace=shop"}},
		"a new template":      {func(p *v1alpha1.InPlaceUpdatePolicy) { p.Status.ObservedTargetGeneration = 1 }, console.ExitTimeout, []string{"waiting for refit-manager to see the template"}},
		"a new spec":          {func(p *v1alpha1.InPlaceUpdatePolicy) { p.Generation = 2 }, console.ExitTimeout, []string{"waiting for refit-manager to see InPlaceUpdatePolicy gently"}},
		"partition":           {in(metav1.ConditionTrue, v1alpha1.ReasonPartition, "spec.partition leaves 1 pod as it is"), console.ExitDone, []string{"spec.partition leaves 1 pod as it is"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, existing(tc.policy))
				f.config.Timeout = time.Minute
				f.expects(t, policy.Status(t.Context(), f.config.Config, web, false), console.ExitDone, tc.words...)
				f.out.Reset()
				words := tc.words
				if name == "done" {
					words = []string{"2 of 2 pods have the template and are available"}
				}
				f.expects(t, policy.Status(t.Context(), f.config.Config, web, true), tc.code, words[len(words)-1])
			})
		})
	}
}

// They are of an earlier template.
func TestFailuresOfAnEarlierTemplateAreNotShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, existing(func(p *v1alpha1.InPlaceUpdatePolicy) {
			in(metav1.ConditionFalse, v1alpha1.ReasonPodsFailed, "1 pod has failed")(p)
			p.Status.ObservedTargetGeneration, p.Status.Failures = 1, []v1alpha1.PodFailure{{Pod: "web-2-a", Reason: "ImagePullBackOff"}}
		}))
		f.config.Timeout = time.Minute
		for _, watch := range []bool{false, true} {
			if err := policy.Status(t.Context(), f.config.Config, web, watch); (err == nil) == watch || strings.Contains(f.out.String(), "ImagePullBackOff") {
				t.Errorf("%v:\n%s", err, f.out.String())
			}
		}
	})
}

// Nothing has its pods updated any more.
func TestStatusOfAHeldWorkloadWithoutAPolicyFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.expects(t, policy.Status(t.Context(), f.config.Config, web, true), console.ExitRefused, "no InPlaceUpdatePolicy")
	d := f.deployment(t)
	d.Labels = map[string]string{v1alpha1.LabelHeld: "true"}
	if err := f.config.API.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f.expects(t, policy.Status(t.Context(), f.config.Config, web, true), console.ExitFailed, "is held, and has no InPlaceUpdatePolicy")
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	f := newFixture(t, existing(nil))
	for i, step := range []struct {
		paused bool
		want   string
	}{{true, "paused: pods whose update has begun are completed"}, {true, "is paused already"}, {false, "resumed"}, {false, "is not paused"}} {
		f.out.Reset()
		f.expects(t, policy.Pause(t.Context(), f.config.Config, web, step.paused), console.ExitDone, "inplaceupdatepolicy/gently "+step.want)
		if f.policies(t)[0].Spec.Paused != step.paused {
			t.Errorf("step %d: not stored", i)
		}
	}
}

func TestPromoteEndsThePauseOfTheStepOfThisRevision(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy func(*v1alpha1.InPlaceUpdatePolicy)
		full   bool
		code   int
		want   *v1alpha1.StepReference
		word   string
	}{
		"a step":    {steps, false, console.ExitDone, &v1alpha1.StepReference{Revision: "r3", Step: 0}, "step 1 of 2 promoted, for revision r3"},
		"all steps": {steps, true, console.ExitDone, &v1alpha1.StepReference{Revision: "r3", Step: 1}, "all steps promoted"},
		"a step that is not finished": {func(p *v1alpha1.InPlaceUpdatePolicy) {
			steps(p)
			p.Status.StepTime = nil
		}, false, console.ExitDone, &v1alpha1.StepReference{Revision: "r3", Step: 0}, "its pause is skipped"},
		"no steps": {nil, false, console.ExitRefused, nil, "has no steps"},
		"no update": {func(p *v1alpha1.InPlaceUpdatePolicy) {
			steps(p)
			p.Status.Step = nil
		}, false, console.ExitRefused, nil, "no step of deployment/web is in progress"},
		"an older template": {func(p *v1alpha1.InPlaceUpdatePolicy) {
			steps(p)
			p.Status.ObservedTargetGeneration = 1
		}, false, console.ExitFailed, nil, "try again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, existing(tc.policy))
			f.expects(t, policy.Promote(t.Context(), f.config.Config, policy.Target{Name: "gently"}, tc.full), tc.code, tc.word)
			if diff := cmp.Diff(tc.want, f.policies(t)[0].Spec.Promoted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	f := newFixture(t, existing(nil))
	history := func(number int64) string {
		var out bytes.Buffer
		if err := policy.History(t.Context(), policy.HistoryConfig{Config: f.config.Config, Revision: number}, &out, web); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	const want = `REVISION   TEMPLATE   IMAGES                CHANGE-CAUSE
1                     app=app:1,log=log:1   <none>
2          present    app=app:2,log=log:1   <none>
`
	if diff := cmp.Diff(want, history(0)); diff != "" {
		t.Error(diff)
	}
	if text := history(1); !strings.Contains(text, "image: app:1") || strings.Contains(text, "pod-template-hash") {
		t.Error(text)
	}
	f.ends = nil
	f.config.Wait = false
	f.expects(t, policy.Set(t.Context(), f.config, web, image("app:3")), console.ExitDone)
	if text := history(0); strings.Contains(text, "present  ") || !strings.Contains(text, "The present template (app=app:3,log=log:1) gets a revision when its update has ended.") {
		t.Error(text)
	}
	var rows bytes.Buffer
	err := policy.History(t.Context(), policy.HistoryConfig{Config: f.config.Config, Table: table.Options{NoHeaders: true}}, &rows, web)
	if err != nil || strings.Count(rows.String(), "\n") != 2 || !strings.HasPrefix(rows.String(), "1 ") {
		t.Errorf("%v: without headers:\n%s", err, rows.String())
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		to    int64
		begun string // another image, whose update is in progress
		code  int
		image string
		word  string
	}{
		"the one before":             {0, "", console.ExitDone, "app:1", "back to revision 1"},
		"an update in progress":      {0, "app:3", console.ExitDone, "app:2", "back to revision 2"},
		"a number":                   {1, "app:3", console.ExitDone, "app:1", "app: image app:2 -> app:1"},
		"the present one":            {2, "", console.ExitDone, "app:2", "has this template already"},
		"a number that is not there": {7, "", console.ExitRefused, "app:2", "there are 2, 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, existing(nil))
			if tc.begun != "" {
				f.expects(t, policy.Set(t.Context(), f.config, web, image(tc.begun)), console.ExitDone)
			}
			err := policy.Undo(t.Context(), policy.UndoConfig{SetConfig: f.config, Revision: tc.to}, web)
			f.expects(t, err, tc.code, tc.word)
			d := f.deployment(t)
			if d.Spec.Template.Spec.Containers[0].Image != tc.image || d.Spec.Template.Labels["pod-template-hash"] != "" {
				t.Errorf("template %+v", d.Spec.Template)
			}
		})
	}
}
