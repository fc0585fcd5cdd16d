package schedule_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/schedule"
)

func TestRefusedRolloutStaysDue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got := f.look(60); got != name(60) {
		t.Fatalf("created %q", got)
	}
	f.rollouts, f.schedule.Status = nil, v1alpha1.RestartScheduleStatus{}
	f.last.Refuse(f.schedule, errors.New("refused"), midnight) // by admission
	if f.last.Status.LastScheduleTime != nil || len(f.last.Status.Active) != 0 {
		t.Errorf("%+v", f.last.Status)
	}
	f.schedule.Status = f.last.Status
	if got := f.look(61); got != name(60) {
		t.Errorf("created %q", got)
	}
}

func TestHistoryIsThatOfACronJobByDefault(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for hour := 1; hour <= 10; hour++ {
		f.look(hour * 60)
		f.end(hour*60+1, hour > 3)
	}
	slices.Reverse(f.rollouts) // a cache has no order
	f.look(10*60 + 30)
	slices.Reverse(f.rollouts)
	var kept []string
	for _, r := range f.rollouts {
		kept = append(kept, r.Name)
	}
	if want := []string{name(3 * 60), name(8 * 60), name(9 * 60), name(10 * 60)}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v: one that failed and three that succeeded", kept, want)
	}
	if got, want := f.schedule.Status.LastSuccessfulTime, midnight.Add((10*60+1)*time.Minute); got == nil || !got.Time.Equal(want) {
		t.Errorf("last success at %v, want %s", got, want)
	}
}

func TestActiveRolloutsAreInTheStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, minutes := range []int{60, 65} { // when it is created, and later
		if f.look(minutes); !slices.Equal(f.schedule.Status.Active, []string{name(60)}) {
			t.Errorf("after %d minutes: active %v", minutes, f.schedule.Status.Active)
		}
	}
}

func TestRolloutThatIsBeingDeletedIsNeitherActiveNorHistory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.look(60)
	f.rollouts[0].DeletionTimestamp = &metav1.Time{Time: midnight.Add(61 * time.Minute)}
	if f.look(62); len(f.schedule.Status.Active) != 0 || len(f.last.Delete) != 0 {
		t.Errorf("%+v", f.last)
	}
	if got := f.look(120); got != name(120) {
		t.Errorf("created %q", got)
	}
}

func TestStartingDeadlineDoesNotRepeatWhatWasCreated(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) { s.StartingDeadlineSeconds = new(int64(6 * 60 * 60)) })
	f.look(60)
	f.end(61, true)
	f.rollouts = nil
	if got := f.look(70); got != "" {
		t.Errorf("created %q again", got)
	}
}

// What is refused is said with the rule, and not in the words of the function that has refused it.
func TestSchedulesAreRefusedWithTheRule(t *testing.T) {
	t.Parallel()
	for spec, want := range map[[2]string]string{
		{"x 3 * * *", "UTC"}: `spec.schedule: must have five fields, minute hour day month weekday, such as "0 3 * * 1", or be a name, such as "@daily": failed to parse int from x`,
		{"0 3", "UTC"}:       `spec.schedule: must have five fields, minute hour day month weekday, such as "0 3 * * 1", or be a name, such as "@daily": expected exactly 5 fields, found 2: [0 3]`,
		{"0 3 * * *", "X/Y"}: `spec.timeZone: must be the name of a time zone of the IANA database, as Europe/Paris, and not "X/Y"`,
	} {
		_, err := schedule.Read(&v1alpha1.RestartScheduleSpec{Schedule: spec[0], TimeZone: spec[1]})
		if err == nil || err.Error() != want {
			t.Errorf("%v: %v", spec, err)
		}
	}
}

func TestSchedulesAreRefusedWithTheFieldAtFault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*v1alpha1.RestartSchedule)
		field  string
	}{
		"labels": {func(s *v1alpha1.RestartSchedule) {
			s.Spec.RolloutTemplate.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		}, ""},
		"an operator that does not exist": {func(s *v1alpha1.RestartSchedule) {
			s.Spec.RolloutTemplate.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
		}, "spec.rolloutTemplate.spec.selector"},
		"a date that does not exist":             {func(s *v1alpha1.RestartSchedule) { s.Spec.Schedule = "0 0 31 2 *" }, "spec.schedule"},
		"a day that none of two months has":      {func(s *v1alpha1.RestartSchedule) { s.Spec.Schedule = "0 0 31 4,6 *" }, "spec.schedule"},
		"a day of leap years":                    {func(s *v1alpha1.RestartSchedule) { s.Spec.Schedule = "0 0 29 2 *" }, ""},
		"a day that one of two months has":       {func(s *v1alpha1.RestartSchedule) { s.Spec.Schedule = "0 0 31 2,3 *" }, ""},
		"a date that does not exist, or Mondays": {func(s *v1alpha1.RestartSchedule) { s.Spec.Schedule = "0 0 31 2 1" }, ""},
		"a reason of two lines": {func(s *v1alpha1.RestartSchedule) {
			s.Annotations[v1beta1.AnnotationReason] = "leak\nlevel=ERROR"
		}, "metadata.annotations[" + v1beta1.AnnotationReason + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			before := f.schedule.DeepCopy()
			tt.change(f.schedule)
			asked := f.schedule.DeepCopy()
			for _, admit := range []func() error{
				func() error { _, err := schedule.Admit(f.schedule, "alice"); return err },
				func() error { _, err := schedule.AdmitUpdate(before, f.schedule, "alice"); return err },
			} {
				err := admit()
				var invalid *rollout.InvalidError
				if errors.As(err, &invalid) != (tt.field != "") || invalid != nil && invalid.Field != tt.field {
					t.Errorf("%v, want field %q", err, tt.field)
				}
			}
			if asked.Annotations[v1beta1.AnnotationRequestedBy] != f.schedule.Annotations[v1beta1.AnnotationRequestedBy] {
				t.Error("the argument was changed")
			}
		})
	}
}

// The reason is in the Events and logs of every restart: who changes it answers for them.
func TestWhoChangesTheReasonAsksForTheRestarts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	changed := f.schedule.DeepCopy()
	changed.Annotations[v1beta1.AnnotationReason] = "memory"
	changed, err := schedule.AdmitUpdate(f.schedule, changed, "bob")
	if err != nil || changed.Annotations[v1beta1.AnnotationRequestedBy] != "bob" {
		t.Fatalf("%v, %v", err, changed)
	}
	labelled := f.schedule.DeepCopy()
	labelled.Labels = map[string]string{"team": "shop"}
	if labelled, err = schedule.AdmitUpdate(f.schedule, labelled, "bob"); err != nil || labelled.Annotations[v1beta1.AnnotationRequestedBy] != "alice" {
		t.Errorf("a label changes who asks: %v, %v", err, labelled)
	}
	f.schedule.Annotations[v1beta1.AnnotationReason] = "memory"
	f.look(60)
	if got := f.rollouts[0].Annotations[v1beta1.AnnotationReason]; got != "memory" {
		t.Errorf("reason %q", got)
	}
	f = newFixture(t)
	f.schedule.Annotations = nil // admitted by a manager before this version
	f.look(60)
	if got, ok := f.rollouts[0].Annotations[v1beta1.AnnotationRequestedBy]; ok || !strings.Contains(f.rollouts[0].Annotations[v1beta1.AnnotationReason], "nightly") {
		t.Errorf("requested by %q: %v", got, f.rollouts[0].Annotations)
	}
}
