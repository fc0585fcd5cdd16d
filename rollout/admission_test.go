package rollout_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout"
)

// fieldOf is the field that an *InvalidError names; empty without an error.
func fieldOf(t *testing.T, err error) string {
	t.Helper()
	var invalid *rollout.InvalidError
	if err != nil && !errors.As(err, &invalid) {
		t.Fatalf("%v is no InvalidError", err)
	}
	if invalid == nil {
		return ""
	}
	if !strings.HasPrefix(err.Error(), invalid.Field+": ") || invalid.Message == "" {
		t.Errorf("error %q does not say the field and the rule", err)
	}
	return invalid.Field
}

func TestWhoCreatesARolloutIsRecorded(t *testing.T) {
	t.Parallel()
	const by, reason, trigger = v1beta1.AnnotationRequestedBy, v1beta1.AnnotationReason, v1alpha1.AnnotationTrigger
	alice, manager := rollout.Requester{Name: "alice"}, rollout.Requester{Name: "refit-manager", Manager: true}
	for name, tt := range map[string]struct {
		has  map[string]string
		user rollout.Requester
		want map[string]string
	}{
		"a user":                              {nil, alice, map[string]string{by: "alice"}},
		"a user who says to be another":       {map[string]string{by: "root", reason: "leak"}, alice, map[string]string{by: "alice", reason: "leak"}},
		"a user who says to be a schedule":    {map[string]string{trigger: "RestartSchedule/nightly"}, alice, map[string]string{by: "alice"}},
		"a user without a printable name":     {map[string]string{by: "root"}, rollout.Requester{Name: "\n"}, map[string]string{}},
		"the manager for somebody":            {map[string]string{by: "bob", trigger: "RestartSchedule/nightly"}, manager, map[string]string{by: "bob", trigger: "RestartSchedule/nightly"}},
		"the manager for changed ConfigMaps":  {map[string]string{trigger: "ConfigMap/settings"}, manager, map[string]string{by: "refit-manager", trigger: "ConfigMap/settings"}},
		"a name with characters of log lines": {nil, rollout.Requester{Name: "al\nice"}, map[string]string{by: "alice"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := newFixture(0).rollout
			object.Annotations = tt.has
			before := object.DeepCopy()
			admitted, err := rollout.Admit(object, tt.user)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, admitted.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the argument was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestRolloutsAreRefusedWithTheFieldAtFault(t *testing.T) {
	t.Parallel()
	const reason = "metadata.annotations[" + v1beta1.AnnotationReason + "]"
	for name, tt := range map[string]struct {
		change func(*v1alpha1.RestartRollout)
		field  string
	}{
		"labels": {func(r *v1alpha1.RestartRollout) {
			r.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		}, ""},
		"an operator that does not exist": {func(r *v1alpha1.RestartRollout) {
			r.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
		}, "spec.selector"},
		"a reason of the greatest length": {func(r *v1alpha1.RestartRollout) {
			r.Annotations[v1beta1.AnnotationReason] = strings.Repeat("x", v1beta1.MaxReason)
		}, ""},
		"a reason that is too long": {func(r *v1alpha1.RestartRollout) {
			r.Annotations[v1beta1.AnnotationReason] = strings.Repeat("x", v1beta1.MaxReason+1)
		}, reason},
		"a reason of two lines": {func(r *v1alpha1.RestartRollout) { r.Annotations[v1beta1.AnnotationReason] = "leak\nlevel=ERROR" }, reason},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := newFixture(0).rollout
			tt.change(object)
			_, err := rollout.Admit(object, rollout.Requester{Name: "alice"})
			if field := fieldOf(t, err); field != tt.field {
				t.Errorf("refused for %q, want %q: %v", field, tt.field, err)
			}
		})
	}
}

func TestWhoHasAskedForARolloutAndWhyCannotBeChanged(t *testing.T) {
	t.Parallel()
	before := newFixture(0).rollout
	alice := rollout.Requester{Name: "alice"}
	for _, key := range []string{v1beta1.AnnotationRequestedBy, v1beta1.AnnotationReason, v1alpha1.AnnotationTrigger, v1alpha1.AnnotationFinished} {
		after := before.DeepCopy()
		after.Annotations[key] = "another"
		if field := fieldOf(t, rollout.AdmitUpdate(before, after, alice)); field != "metadata.annotations["+key+"]" {
			t.Errorf("%s: refused for %q", key, field)
		}
	}
	after := before.DeepCopy()
	after.Spec.Paused, after.Annotations["team"] = true, "shop"
	if err := rollout.AdmitUpdate(before, after, alice); err != nil {
		t.Error(err)
	}
	after.Annotations[v1alpha1.AnnotationFinished] = "{}"
	if err := rollout.AdmitUpdate(before, after, rollout.Requester{Name: "refit-manager", Manager: true}); err != nil {
		t.Errorf("refit-manager cannot record the end: %v", err)
	}
}
