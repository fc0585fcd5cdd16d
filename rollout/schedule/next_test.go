package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/schedule"
)

var midnight = at("2026-11-22T00:00:00Z")

// fixture is a schedule of every hour with its rollouts.
type fixture struct {
	t        *testing.T
	schedule *v1alpha1.RestartSchedule
	rollouts []*v1alpha1.RestartRollout
	last     schedule.Decision
}

func newFixture(t *testing.T, change ...func(*v1alpha1.RestartScheduleSpec)) *fixture {
	t.Helper()
	f := &fixture{t: t, schedule: &v1alpha1.RestartSchedule{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "nightly", UID: "s", CreationTimestamp: metav1.NewTime(midnight.Add(30 * time.Minute)),
		Annotations: map[string]string{v1beta1.AnnotationRequestedBy: "alice"},
	}}}
	f.schedule.Spec.Schedule = "0 * * * *"
	f.schedule.Spec.RolloutTemplate.Spec.Containers = v1alpha1.RolloutContainers("app")
	for _, c := range change {
		c(&f.schedule.Spec)
	}
	return f
}

// look decides at so many minutes after midnight and carries that out; it returns the name of what was created.
func (f *fixture) look(minutes int) string {
	f.t.Helper()
	times, err := schedule.Read(&f.schedule.Spec)
	if err != nil {
		f.t.Fatal(err)
	}
	now := midnight.Add(time.Duration(minutes) * time.Minute)
	f.last = schedule.Next(f.schedule, times, f.rollouts, now)
	f.schedule.Status = f.last.Status
	kept := f.rollouts[:0:0]
	for _, r := range f.rollouts {
		deleted := false
		for _, d := range f.last.Delete {
			deleted = deleted || d == r
		}
		if !deleted {
			kept = append(kept, r)
		}
	}
	f.rollouts = kept
	if f.last.Create == nil {
		return ""
	}
	created := f.last.Create.DeepCopy()
	created.CreationTimestamp = metav1.NewTime(now)
	f.rollouts = append(f.rollouts, created)
	return created.Name
}

// end ends the last rollout.
func (f *fixture) end(minutes int, succeeded bool) {
	r := f.rollouts[len(f.rollouts)-1]
	r.Status.CompletionTime = &metav1.Time{Time: midnight.Add(time.Duration(minutes) * time.Minute)}
	status := metav1.ConditionTrue
	if !succeeded {
		status = metav1.ConditionFalse
	}
	r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: status}}
}

func name(minutes int) string {
	return fmt.Sprintf("nightly-%d", midnight.Add(time.Duration(minutes)*time.Minute).Unix()/60)
}

func TestRolloutIsCreatedOnceAtEachScheduledTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got := f.look(40); got != "" || !f.last.Again.Equal(midnight.Add(time.Hour)) {
		t.Fatalf("created %q, again at %s", got, f.last.Again)
	}
	if got := f.look(60); got != name(60) {
		t.Fatalf("created %q", got)
	}
	created := f.rollouts[0]
	want := map[string]string{v1alpha1.AnnotationTrigger: "RestartSchedule/nightly", v1beta1.AnnotationRequestedBy: "alice", v1beta1.AnnotationReason: "RestartSchedule nightly"}
	if diff := cmp.Diff(want, created.Annotations); diff != "" || !metav1.IsControlledBy(created, f.schedule) || created.Spec.Containers[0].Name != "app" {
		t.Errorf("%s\n%+v", diff, created)
	}
	f.end(61, true)
	if got := f.look(62); got != "" || len(f.schedule.Status.Active) != 0 || f.schedule.Status.LastSuccessfulTime == nil {
		t.Errorf("created %q, %+v", got, f.schedule.Status)
	}
	if got := f.look(121); got != name(120) {
		t.Errorf("created %q", got)
	}
}

func TestRolloutWhoseStatusWasNotWrittenIsNotRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.look(60)
	f.schedule.Status = v1alpha1.RestartScheduleStatus{}
	f.end(61, true)
	if got := f.look(62); got != "" || f.schedule.Status.LastScheduleTime == nil {
		t.Errorf("created %q, %+v", got, f.schedule.Status)
	}
}

func TestOnlyTheLastOfSeveralMissedTimesIsMadeUpFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got := f.look(5*60 + 50); got != name(5*60) {
		t.Errorf("created %q", got)
	}
	f = newFixture(t, func(s *v1alpha1.RestartScheduleSpec) { s.StartingDeadlineSeconds = new(int64(600)) })
	if got := f.look(5*60 + 50); got != "" {
		t.Errorf("created %q after the deadline", got)
	}
	if got := f.look(6*60 + 9); got != name(6*60) {
		t.Errorf("created %q", got)
	}
}

func TestForbidWaitsForThePreviousRollout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.look(60)
	if got := f.look(120); got != "" || f.last.Waiting != name(60) {
		t.Fatalf("created %q, waits for %q", got, f.last.Waiting)
	}
	f.end(150, true)
	if got := f.look(150); got != name(120) {
		t.Errorf("created %q", got)
	}
}

// A restart under way of a rollout that is gone would not be known to the next one: two pods of three were out of service.
func TestReplaceLetsThePreviousRolloutEndWhatItHasBegun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) { s.ConcurrencyPolicy = v1alpha1.ScheduleReplace })
	f.look(60)
	first := f.rollouts[0]
	if got := f.look(120); got != name(120) || len(f.rollouts) != 2 {
		t.Fatalf("created %q, %d rollouts", got, len(f.rollouts))
	}
	if len(f.last.Replace) != 1 || f.last.Replace[0] != first || !strings.Contains(f.last.Replaced.Message, name(120)) {
		t.Fatalf("%+v", f.last)
	}
	if diff := cmp.Diff([]string{name(60), name(120)}, f.schedule.Status.Active); diff != "" {
		t.Error(diff)
	}
	first.Status.Conditions = append(first.Status.Conditions, f.last.Replaced)
	if f.look(121); len(f.last.Replace) != 0 || len(f.last.Delete) != 0 || len(f.rollouts) != 2 {
		t.Errorf("%+v", f.last)
	}
	first.Status.CompletionTime = &metav1.Time{Time: midnight.Add(122 * time.Minute)}
	if f.look(122); len(f.rollouts) != 1 || f.rollouts[0].Name != name(120) {
		t.Errorf("%d rollouts", len(f.rollouts))
	}
}

// Its condition names the rollout that has replaced it, and would name another after each time that it takes to end.
func TestRolloutThatTakesLongToEndIsReplacedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) { s.ConcurrencyPolicy = v1alpha1.ScheduleReplace })
	f.look(60)
	first := f.rollouts[0]
	f.look(120)
	first.Status.Conditions = append(first.Status.Conditions, f.last.Replaced)
	if got := f.look(180); got != name(180) || len(f.last.Replace) != 1 || f.last.Replace[0].Name != name(120) {
		t.Errorf("created %q, replaces %+v", got, f.last.Replace)
	}
}

func TestReplaceIsMadeUpForWhenItWasNotWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) { s.ConcurrencyPolicy = v1alpha1.ScheduleReplace })
	f.look(60)
	f.look(120)
	f.schedule.Status.LastScheduleTime = nil
	if got := f.look(121); got != "" || len(f.last.Replace) != 1 || f.last.Replace[0].Name != name(60) {
		t.Errorf("created %q, %+v", got, f.last.Replace)
	}
}

func TestSuspendedScheduleCreatesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) { s.Suspend = true })
	if got := f.look(60); got != "" || !f.last.Again.IsZero() {
		t.Errorf("created %q, again at %s", got, f.last.Again)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) { s.SuccessfulRolloutsHistoryLimit = new(int32(2)) })
	for hour := 1; hour <= 8; hour++ {
		f.look(hour * 60)
		f.end(hour*60+1, hour%2 == 0)
	}
	f.look(8*60 + 30)
	var kept []string
	for _, r := range f.rollouts {
		kept = append(kept, r.Name)
	}
	if diff := cmp.Diff([]string{name(6 * 60), name(7 * 60), name(8 * 60)}, kept); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryMayBeKeptOfFailuresOnlyOrNotAtAll(t *testing.T) {
	t.Parallel()
	for failed, want := range map[int32][]string{0: nil, 2: {name(3 * 60), name(5 * 60)}} {
		f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) {
			s.SuccessfulRolloutsHistoryLimit, s.FailedRolloutsHistoryLimit = new(int32(0)), &failed
		})
		for hour := 1; hour <= 6; hour++ {
			f.look(hour * 60)
			f.end(hour*60+1, hour%2 == 0)
		}
		f.look(6*60 + 30)
		var kept []string
		for _, r := range f.rollouts {
			kept = append(kept, r.Name)
		}
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Errorf("%d failed ones are kept (-want +got):\n%s", failed, diff)
		}
	}
}

func TestWhoChangesTheScheduleAsksForItsRestarts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admitted, err := schedule.Admit(f.schedule, "alice")
	if err != nil || admitted.Annotations[v1beta1.AnnotationRequestedBy] != "alice" {
		t.Fatalf("%v, %v", err, admitted)
	}
	changed := admitted.DeepCopy()
	changed.Spec.Suspend = true
	if changed, err = schedule.AdmitUpdate(admitted, changed, "bob"); err != nil || changed.Annotations[v1beta1.AnnotationRequestedBy] != "bob" {
		t.Errorf("%v, %v", err, changed)
	}
	forged := admitted.DeepCopy()
	forged.Annotations[v1beta1.AnnotationRequestedBy] = "root"
	if _, err = schedule.AdmitUpdate(admitted, forged, "bob"); err == nil || !strings.HasPrefix(err.Error(), "metadata.annotations[refit.dev/requested-by]") {
		t.Errorf("%v", err)
	}
	wrong := admitted.DeepCopy()
	wrong.Spec.Schedule = "0 25 * * *"
	if _, err = schedule.AdmitUpdate(admitted, wrong, "bob"); err == nil || !strings.HasPrefix(err.Error(), "spec.schedule: ") {
		t.Errorf("%v", err)
	}
}

// Otherwise the last pods would never be restarted, if no rollout has the time for all of them.
func TestARolloutAfterOneThatHasNotReachedAllPodsBeginsWithTheOldest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(s *v1alpha1.RestartScheduleSpec) { s.ConcurrencyPolicy = v1alpha1.ScheduleReplace })
	oldest := func(minutes int, want string) {
		t.Helper()
		if f.look(minutes) == "" || f.last.Create.Annotations[v1alpha1.AnnotationOldestFirst] != want {
			t.Errorf("created %+v, want the annotation to be %q", f.last.Create, want)
		}
	}
	oldest(60, "")
	oldest(120, "true") // the first has not ended
	f.end(130, false)
	f.rollouts[0].Status = f.rollouts[1].Status
	oldest(180, "true") // the second has ended at its deadline
	f.end(190, true)
	oldest(240, "")
	f.end(250, false)
	oldest(300, "true") // that an earlier one has succeeded does not matter
}
