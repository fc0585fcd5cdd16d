package configchange_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/configchange"
)

// fixture is a trigger whose container has the ConfigMap settings in a volume and the ConfigMap env in its environment.
type fixture struct {
	trigger  *v1alpha1.RestartTrigger
	observed configchange.Observation
	now      time.Time
	last     configchange.Decision
	created  []*v1alpha1.RestartRollout
	refresh  []string
}

func newFixture() *fixture {
	f := &fixture{now: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), trigger: &v1alpha1.RestartTrigger{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-web", UID: "trigger"},
		Spec:       v1alpha1.RestartTriggerSpec{TargetRef: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
	}}
	f.observed.Settings = configchange.Settings{Containers: []string{"app"}, MaxUnavailable: new(intstr.FromString("25%"))}
	f.observed.References = []configchange.Reference{{Kind: "ConfigMap", Name: "env"}, {Kind: "ConfigMap", Name: "settings", Mounted: true}}
	f.observed.Objects = []v1alpha1.ConfigObject{{Kind: "ConfigMap", Name: "env", ResourceVersion: "1", Digest: "a"}, {Kind: "ConfigMap", Name: "settings", ResourceVersion: "2", Digest: "b"}}
	f.look(0)
	return f
}

// look decides after so many seconds and carries that out.
func (f *fixture) look(seconds float64) {
	f.now = f.now.Add(time.Duration(seconds * float64(time.Second)))
	f.last = configchange.Next(f.trigger, f.observed, f.now)
	f.trigger.Status = f.last.Status
	if f.last.Refresh != "" {
		f.refresh = append(f.refresh, f.last.Refresh)
	}
	if f.last.Create != nil {
		f.created = append(f.created, f.last.Create)
	}
}

// settle looks whenever that was asked for.
func (f *fixture) settle() {
	for f.look(0); !f.last.Again.IsZero(); {
		f.look(f.last.Again.Sub(f.now).Seconds())
	}
}

func (f *fixture) set(name, digest string) {
	for i := range f.observed.Objects {
		if o := &f.observed.Objects[i]; o.Name == name {
			o.Digest, o.ResourceVersion = digest, o.ResourceVersion+"0"
		}
	}
}

func (f *fixture) reason() (string, string) {
	c := meta.FindStatusCondition(f.trigger.Status.Conditions, v1alpha1.ConditionReady)
	return c.Reason, c.Message
}

func (f *fixture) isReady() bool {
	return meta.IsStatusConditionTrue(f.trigger.Status.Conditions, v1alpha1.ConditionReady)
}

func TestChangedContentMakesOneRollout(t *testing.T) {
	t.Parallel()
	f := newFixture()
	if f.settle(); len(f.created) != 0 {
		t.Fatal("the content that was found first restarts nothing")
	}
	f.set("env", "c")
	begin := f.now
	f.settle()
	if len(f.created) != 1 || f.now.Sub(begin) != 3*time.Second || len(f.refresh) != 0 {
		t.Fatalf("%d rollouts after %s, refreshed %q", len(f.created), f.now.Sub(begin), f.refresh)
	}
	r := f.created[0]
	want := map[string]string{v1alpha1.AnnotationTrigger: "ConfigMap/env", v1beta1.AnnotationReason: "ConfigMap env has changed"}
	if diff := cmp.Diff(want, r.Annotations); diff != "" || !metav1.IsControlledBy(r, f.trigger) || !strings.HasPrefix(r.Name, "web-") {
		t.Errorf("%s\n%+v", diff, r.ObjectMeta)
	}
	if *r.Spec.TargetRef != f.trigger.Spec.TargetRef || !slices.Equal(r.Spec.ContainerNames(), []string{"app"}) || r.Spec.MaxUnavailable.String() != "25%" {
		t.Errorf("%+v", r.Spec)
	}
	if f.settle(); len(f.created) != 1 {
		t.Error("the change is repeated")
	}
}

func TestVolumesAreUpdatedBeforeTheRestart(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.set("settings", "c")
	begin := f.now
	f.settle()
	if len(f.created) != 1 || f.now.Sub(begin) != 6*time.Second || !slices.Equal(f.refresh, []string{f.created[0].Name}) {
		t.Errorf("%d rollouts after %s, refreshed %q", len(f.created), f.now.Sub(begin), f.refresh)
	}
}

func TestSeveralChangesMakeOneRollout(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.set("env", "c")
	f.look(0)
	f.look(2)
	f.set("settings", "d")
	f.look(0)
	f.look(2)
	f.set("settings", "e")
	f.look(0)
	if f.look(2.5); len(f.created) != 0 || len(f.refresh) != 0 {
		t.Fatalf("restarted before it was quiet")
	}
	f.settle()
	want := map[string]string{v1alpha1.AnnotationTrigger: "ConfigMap/env", v1beta1.AnnotationReason: "ConfigMap env, ConfigMap settings have changed"}
	if len(f.created) != 1 || !maps.Equal(f.created[0].Annotations, want) {
		t.Errorf("%+v", f.created)
	}
}

func TestChangeBackBeforeTheRestartRestartsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.set("env", "c")
	f.look(0)
	f.set("env", "a")
	f.settle()
	if reason, _ := f.reason(); len(f.created) != 0 || f.trigger.Status.Pending != nil || reason != v1alpha1.ReasonWatching {
		t.Errorf("%+v", f.trigger.Status)
	}
}

func TestChangeDuringARolloutMakesOneMoreAfterIt(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.set("env", "c")
	f.settle()
	f.observed.Busy = f.created[0].Name
	f.set("env", "d")
	f.settle()
	f.set("env", "c")
	f.settle()
	f.set("env", "d")
	f.settle()
	if _, message := f.reason(); len(f.created) != 1 || !strings.Contains(message, "waiting for the end of RestartRollout "+f.observed.Busy) {
		t.Fatalf("%d rollouts: %s", len(f.created), message)
	}
	f.observed.Busy = ""
	f.settle()
	f.settle()
	if len(f.created) != 2 || f.created[0].Name == f.created[1].Name {
		t.Errorf("%+v", f.created)
	}
}

func TestManagerThatIsKilledNeitherRepeatsNorLosesAChange(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.set("settings", "c")
	f.look(0)
	f.look(3)
	f.look(2)
	before := f.trigger.DeepCopy()
	f.look(1)
	f.trigger = before // the rollout was created, and the status was not written
	f.observed.Busy = f.created[0].Name
	f.look(100)
	if len(f.created) != 2 || f.created[0].Name != f.created[1].Name {
		t.Errorf("%+v", f.created)
	}
	if f.settle(); len(f.created) != 2 {
		t.Error("repeated")
	}
	f.trigger = before.DeepCopy()
	f.set("settings", "d")
	f.settle()
	f.observed.Busy = ""
	if f.settle(); len(f.created) != 3 || f.created[2].Name == f.created[0].Name {
		t.Error("a change after the first rollout was created has to have a rollout of its own")
	}
	f.created = f.created[:2]
	f.set("env", "while no manager ran")
	f.now = f.now.Add(time.Hour)
	if f.settle(); len(f.created) != 3 {
		t.Error("lost")
	}
}

func TestReferencedObjectsAreCreatedAndDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.observed.Objects = append(f.observed.Objects, v1alpha1.ConfigObject{Kind: "Secret", Name: "optional"})
	if f.settle(); len(f.created) != 0 {
		t.Fatal("a new reference restarts nothing")
	}
	f.set("optional", "x")
	if f.settle(); len(f.created) != 1 {
		t.Fatal("an object that did not exist is a change")
	}
	f.set("optional", "")
	if f.settle(); len(f.created) != 1 {
		t.Fatal("a deleted object restarts nothing")
	}
	f.set("optional", "x")
	if f.settle(); len(f.created) != 1 {
		t.Fatal("the same content again restarts nothing")
	}
	f.set("optional", "y")
	if f.settle(); len(f.created) != 2 {
		t.Fatal("other content is a change")
	}
	f.observed.Objects = f.observed.Objects[:2]
	if f.settle(); len(f.created) != 2 || len(f.trigger.Status.Objects) != 2 {
		t.Errorf("%+v", f.trigger.Status)
	}
}

func TestInvalidAnnotationIsInTheConditionAndLosesNoChange(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.trigger.Status = configchange.Invalid(f.trigger, errors.New("no container nope"), f.now).Status
	if reason, message := f.reason(); reason != v1alpha1.ReasonInvalidAnnotation || message != "no container nope" || f.isReady() {
		t.Errorf("%s: %s, ready %t", reason, message, f.isReady())
	}
	f.set("env", "c")
	if f.settle(); len(f.created) != 1 {
		t.Error("lost")
	}
	if !f.isReady() {
		t.Error("not ready although the annotation can be read again")
	}
}

// One may be in a volume, and the other in the environment.
func TestASecretIsNotTheConfigMapOfItsName(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.observed.References = append(f.observed.References, configchange.Reference{Kind: "Secret", Name: "settings"})
	f.observed.Objects = append(f.observed.Objects, v1alpha1.ConfigObject{Kind: "Secret", Name: "settings", Digest: "s"})
	if f.settle(); len(f.created) != 0 {
		t.Fatalf("%+v", f.created)
	}
	f.observed.Objects[2].Digest = "t"
	if f.settle(); len(f.created) != 1 || len(f.refresh) != 0 || f.created[0].Annotations[v1alpha1.AnnotationTrigger] != "Secret/settings" {
		t.Errorf("%+v, refreshed %q", f.created, f.refresh)
	}
}

func TestNamesFitAndDiffer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 250)
	names := map[string]bool{}
	for _, name := range []string{"web", long, long + "b", long[:200]} {
		got := configchange.TriggerName("Deployment", name)
		if len(got) > 200 || names[got] {
			t.Errorf("%s", got)
		}
		names[got] = true
	}
}
