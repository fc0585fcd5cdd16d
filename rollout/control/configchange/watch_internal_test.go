package configchange

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout/configchange"
)

type metadata = metav1.PartialObjectMetadata

func annotated(change ...func(*metadata)) *metadata {
	o := &metadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: 1, Annotations: map[string]string{
		v1alpha1.AnnotationRestartOnConfigChange: "app", v1alpha1.AnnotationRestartMaxUnavailable: "1",
	}}}
	for _, c := range change {
		c(o)
	}
	return o
}

func plain(o *metadata) { o.Annotations = nil }

func TestAWorkloadIsLookedAtWhenItsAnnotationsOrItsSpecChange(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after *metadata
		want          bool
	}{
		"nothing":                         {annotated(), annotated(), false},
		"a version of its status":         {annotated(), annotated(func(o *metadata) { o.ResourceVersion = "2" }), false},
		"its spec":                        {annotated(), annotated(func(o *metadata) { o.Generation++ }), true},
		"created again":                   {annotated(), annotated(func(o *metadata) { o.UID = "again" }), true},
		"other containers":                {annotated(), annotated(func(o *metadata) { o.Annotations[v1alpha1.AnnotationRestartOnConfigChange] = "log" }), true},
		"another maximum":                 {annotated(), annotated(func(o *metadata) { o.Annotations[v1alpha1.AnnotationRestartMaxUnavailable] = "2" }), true},
		"no maximum any more":             {annotated(), annotated(func(o *metadata) { delete(o.Annotations, v1alpha1.AnnotationRestartMaxUnavailable) }), true},
		"it has lost the annotation":      {annotated(), annotated(plain), true},
		"it has got the annotation":       {annotated(plain), annotated(), true},
		"one that never had it":           {annotated(plain), annotated(plain, func(o *metadata) { o.Generation++ }), false},
		"one that was created without it": {annotated(plain), annotated(plain, func(o *metadata) { o.UID = "again" }), false},
	} {
		if got := workloadChanged().Update(event.TypedUpdateEvent[*metadata]{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
	if !workloadChanged().Create(event.TypedCreateEvent[*metadata]{Object: annotated()}) {
		t.Error("a workload with the annotation is not looked at when the manager starts")
	}
	if workloadChanged().Create(event.TypedCreateEvent[*metadata]{Object: annotated(plain)}) || workloadChanged().Delete(event.TypedDeleteEvent[*metadata]{Object: annotated()}) {
		t.Error("one without the annotation, or that is gone, is looked at")
	}
}

// A ConfigMap that is replaced is deleted and created: the pods would be restarted for a moment without it.
func TestAConfigMapIsLookedAtUnlessItIsDeleted(t *testing.T) {
	t.Parallel()
	p := notDeleted()
	if !p.Create(event.TypedCreateEvent[*metadata]{Object: annotated()}) || !p.Update(event.TypedUpdateEvent[*metadata]{ObjectOld: annotated(), ObjectNew: annotated()}) {
		t.Error("a new content is not looked at")
	}
	if p.Delete(event.TypedDeleteEvent[*metadata]{Object: annotated()}) {
		t.Error("a deletion is looked at")
	}
}

func triggerOf(objects ...v1alpha1.ConfigObject) *v1alpha1.RestartTrigger {
	return &v1alpha1.RestartTrigger{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: configchange.TriggerName("Deployment", "web")},
		Spec:       v1alpha1.RestartTriggerSpec{TargetRef: key.reference()}, Status: v1alpha1.RestartTriggerStatus{Objects: objects},
	}
}

// Between the look at an object and the write of its name, a change of it has found no user.
func TestAWorkloadIsLookedAtAgainOnceItsObjectsAreKnown(t *testing.T) {
	t.Parallel()
	of := func(kind, name, version string) v1alpha1.ConfigObject {
		return v1alpha1.ConfigObject{Kind: kind, Name: name, ResourceVersion: version}
	}
	for name, tt := range map[string]struct {
		after []v1alpha1.ConfigObject
		want  bool
	}{
		"the same":        {[]v1alpha1.ConfigObject{of("ConfigMap", "settings", "1")}, false},
		"another version": {[]v1alpha1.ConfigObject{of("ConfigMap", "settings", "2")}, false},
		"another name":    {[]v1alpha1.ConfigObject{of("ConfigMap", "other", "1")}, true},
		"another kind":    {[]v1alpha1.ConfigObject{of("Secret", "settings", "1")}, true},
		"one more":        {[]v1alpha1.ConfigObject{of("ConfigMap", "settings", "1"), of("Secret", "password", "1")}, true},
		"none":            {nil, true},
	} {
		e := event.TypedUpdateEvent[*v1alpha1.RestartTrigger]{ObjectOld: triggerOf(of("ConfigMap", "settings", "1")), ObjectNew: triggerOf(tt.after...)}
		if got := found().Update(e); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
	if !found().Create(event.TypedCreateEvent[*v1alpha1.RestartTrigger]{Object: triggerOf()}) {
		t.Error("a workload that lost its annotation while no manager ran is not looked at")
	}
	if !found().Delete(event.TypedDeleteEvent[*v1alpha1.RestartTrigger]{Object: triggerOf()}) {
		t.Error("a workload whose trigger a user has deleted is not looked at, so that no change of its ConfigMaps is found")
	}
}

// A change that waits for a rollout of its workload goes on when that ends or is deleted.
func TestTheEndOfARolloutIsLookedAt(t *testing.T) {
	t.Parallel()
	running, ended := &v1alpha1.RestartRollout{}, &v1alpha1.RestartRollout{}
	ended.Status.CompletionTime = &metav1.Time{Time: time.Unix(1e9, 0)}
	for name, tt := range map[string]struct {
		before, after *v1alpha1.RestartRollout
		want          bool
	}{"it ends": {running, ended, true}, "it goes on": {running, running, false}, "it has ended before": {ended, ended, false}} {
		if got := rolloutEnded().Update(event.TypedUpdateEvent[*v1alpha1.RestartRollout]{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !rolloutEnded().Delete(event.TypedDeleteEvent[*v1alpha1.RestartRollout]{Object: running}) {
		t.Error("its deletion is not looked at")
	}
	if rolloutEnded().Create(event.TypedCreateEvent[*v1alpha1.RestartRollout]{Object: running}) {
		t.Error("its creation is looked at")
	}
}

func TestOnlyWorkloadsThatUseAnObjectFollowIt(t *testing.T) {
	t.Parallel()
	elsewhere := triggerOf(v1alpha1.ConfigObject{Kind: "ConfigMap", Name: "settings"})
	elsewhere.Namespace = "bank"
	a := newAPIServer(t, triggerOf(v1alpha1.ConfigObject{Kind: "ConfigMap", Name: "settings"}, v1alpha1.ConfigObject{Kind: "Secret", Name: "password"}), elsewhere)
	of := func(name string) *metadata { return annotated(func(o *metadata) { o.Name = name }) }
	for name, tt := range map[string]struct {
		kind, object string
		want         []workload
	}{
		"its ConfigMap":         {"ConfigMap", "settings", []workload{key}},
		"its Secret":            {"Secret", "password", []workload{key}},
		"another ConfigMap":     {"ConfigMap", "password", nil},
		"a Secret of that name": {"Secret", "settings", nil},
	} {
		if diff := cmp.Diff(tt.want, a.reconciler.users(t.Context(), tt.kind, of(tt.object))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOnlyTheRolloutsOfAWorkloadWithATriggerMatterToIt(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, triggerOf())
	for name, tt := range map[string]struct {
		change func(*v1alpha1.RestartRollout)
		want   []workload
	}{
		"its own":              {func(*v1alpha1.RestartRollout) {}, []workload{key}},
		"of another workload":  {func(r *v1alpha1.RestartRollout) { r.Spec.TargetRef.Name = "db" }, nil},
		"of another kind":      {func(r *v1alpha1.RestartRollout) { r.Spec.TargetRef.Kind = "StatefulSet" }, nil},
		"of a kind of others":  {func(r *v1alpha1.RestartRollout) { r.Spec.TargetRef.APIVersion = "apps.kruise.io/v1alpha1" }, nil},
		"of a selector":        {func(r *v1alpha1.RestartRollout) { r.Spec.TargetRef = nil }, nil},
		"of another namespace": {func(r *v1alpha1.RestartRollout) { r.Namespace = "bank" }, nil},
	} {
		rollout := &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "manual"}}
		rollout.Spec.TargetRef = new(key.reference())
		tt.change(rollout)
		if diff := cmp.Diff(tt.want, a.reconciler.ofRollout(t.Context(), rollout)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What is not a rollout of the workload, or has ended, holds up no change.
func TestAChangeWaitsForNoOtherRollout(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1alpha1.RestartRollout){
		"of another workload":  func(r *v1alpha1.RestartRollout) { r.Spec.TargetRef.Name = "db" },
		"of a selector":        func(r *v1alpha1.RestartRollout) { r.Spec.TargetRef = nil },
		"of another namespace": func(r *v1alpha1.RestartRollout) { r.Namespace = "bank" },
		"that has ended":       func(r *v1alpha1.RestartRollout) { r.Status.CompletionTime = &metav1.Time{Time: time.Unix(1e9, 0)} },
	} {
		other := &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "manual"}}
		other.Spec.TargetRef = new(key.reference())
		change(other)
		a := newAPIServer(t, deployment(), configMap("1"), other)
		a.settle()
		edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
		if a.settle(); len(a.rollouts()) != 2 {
			t.Errorf("%s: %d rollouts", name, len(a.rollouts()))
		}
	}
}

// The volumes of pods of others need no update, and those that are being deleted get none.
func TestOnlyThePodsOfTheWorkloadAreRefreshed(t *testing.T) {
	t.Parallel()
	leaving, db := podOf("web-abc", "web-abc-2"), podOf("web-abc", "db")
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Unix(1e9, 0)}, []string{"test/keep"}
	db.Labels["app"] = "db"
	elsewhere := podOf("web-abc", "elsewhere")
	elsewhere.Namespace = "bank"
	a := newAPIServer(t, deployment(), configMap("1"), podOf("web-abc", "web-abc-1"), leaving, db, elsewhere)
	a.settle()
	edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
	a.settle()
	if _, ok := a.refreshed["web-abc-1"]; !ok || len(a.refreshed) != 1 {
		t.Errorf("%v", a.refreshed)
	}
}

func TestAWorkloadThatIsGoneOrBeingDeletedIsLeftAlone(t *testing.T) {
	t.Parallel()
	leaving := deployment()
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Unix(1e9, 0)}, []string{"test/keep"}
	for name, objects := range map[string][]client.Object{"being deleted": {leaving, configMap("1")}, "gone": {configMap("1")}} {
		a := newAPIServer(t, objects...)
		if a.settle(); a.trigger() != nil {
			t.Errorf("%s: %+v", name, a.trigger())
		}
	}
}

// The garbage collector is about to delete it; until then it would be changed for the wrong workload.
func TestTheTriggerOfAWorkloadOfTheSameNameThatIsGoneIsAnError(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	a.settle()
	edit(a, &appsv1.Deployment{ObjectMeta: deployment().ObjectMeta}, func(o *appsv1.Deployment) { o.UID = types.UID("again") })
	if _, err := a.reconciler.Reconcile(t.Context(), key); err == nil {
		t.Errorf("%+v", a.trigger())
	}
}

func TestWhatIsNoMetadataIsNotTrimmed(t *testing.T) {
	t.Parallel()
	if out, err := trim(configMap("1")); err == nil {
		t.Errorf("%T", out)
	}
}
