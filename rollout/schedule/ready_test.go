package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/schedule"
)

func (f *fixture) wantReady(status metav1.ConditionStatus, reason string) {
	f.t.Helper()
	c := meta.FindStatusCondition(f.last.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != 7 || f.last.Status.ObservedGeneration != 7 {
		f.t.Errorf("Ready is %+v, want %s, %s; generation %d", c, status, reason, f.last.Status.ObservedGeneration)
	}
}

func TestScheduleShowsWhetherItIsReadyAndWhenItRunsNext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.schedule.Generation = 7
	f.look(40)
	f.wantReady(metav1.ConditionTrue, v1alpha1.ReasonScheduled)
	if next := f.last.Status.NextScheduleTime; next == nil || !next.Time.Equal(midnight.Add(time.Hour)) {
		t.Errorf("next at %v", next)
	}
	f.schedule.Spec.Suspend = true
	f.look(41)
	f.wantReady(metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	if next := f.last.Status.NextScheduleTime; next != nil {
		t.Errorf("suspended, and next at %v", next)
	}
}

func TestInvalidScheduleIsNotReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) { s.TimeZone = "Europe/Atlantis" })
	f.schedule.Generation, f.schedule.Status.NextScheduleTime = 7, new(metav1.NewTime(midnight))
	_, err := schedule.Read(&f.schedule.Spec)
	if err == nil {
		t.Fatal("read")
	}
	f.last = schedule.Invalid(f.schedule, err, midnight)
	f.wantReady(metav1.ConditionFalse, v1alpha1.ReasonInvalidSchedule)
	if f.last.Status.NextScheduleTime != nil {
		t.Errorf("%+v", f.last.Status)
	}
}

func TestScheduleWhoseRolloutIsRefusedIsNotReadySinceThen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.schedule.Generation = 7
	for try := range 2 {
		times, err := schedule.Read(&f.schedule.Spec)
		if err != nil {
			t.Fatal(err)
		}
		now := midnight.Add(time.Hour + time.Duration(try)*time.Minute)
		f.last = schedule.Next(f.schedule, times, nil, now)
		f.last.Refuse(f.schedule, errors.New("quota"), now)
		f.schedule.Status = f.last.Status
		f.wantReady(metav1.ConditionFalse, v1alpha1.ReasonRolloutRefused)
		if c := f.last.Status.Conditions[0]; !c.LastTransitionTime.Time.Equal(midnight.Add(time.Hour)) || c.Message != "quota" {
			t.Errorf("%+v", c)
		}
	}
	f.look(63)
	f.wantReady(metav1.ConditionTrue, v1alpha1.ReasonScheduled)
}

func TestMetadataOfTheTemplateIsThatOfTheRollouts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) {
		s.RolloutTemplate.Metadata = v1alpha1.RolloutTemplateMeta{
			Labels: map[string]string{"team": "shop"},
			Annotations: map[string]string{
				"example.com/ticket": "1", v1beta1.AnnotationReason: "leak", v1beta1.AnnotationRequestedBy: "bob", v1alpha1.AnnotationFinished: "{}", v1alpha1.AnnotationTrigger: "ConfigMap/a",
			},
		}
	})
	f.look(60)
	want := map[string]string{
		"example.com/ticket": "1", v1beta1.AnnotationReason: "leak", v1beta1.AnnotationRequestedBy: "alice", v1alpha1.AnnotationTrigger: "RestartSchedule/nightly",
	}
	created := f.rollouts[0]
	if diff := cmp.Diff(want, created.Annotations); diff != "" || created.Labels["team"] != "shop" {
		t.Errorf("labels %v, annotations, -want +got:\n%s", created.Labels, diff)
	}
}
