package history_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

var refitAPI = refitv1alpha1.GroupVersion().String()

// watch is the manager's record of the ConfigMap that a workload uses.
func (s *fixture) watch(seconds float64) {
	s.t.Helper()
	trigger := &refitv1alpha1.RestartTrigger{TypeMeta: metav1.TypeMeta{Kind: refitv1alpha1.KindRestartTrigger, APIVersion: refitAPI}}
	trigger.Status.Objects = []refitv1alpha1.ConfigObject{{Kind: "ConfigMap", Name: "settings", Digest: "0123"}}
	s.write(seconds, ref{"update", managerUser, refitv1alpha1.ResourceRestartTrigger, "status", "chaos", "deployment-web"}, 200, trigger)
}

// change is another content of the ConfigMap.
func (s *fixture) change(seconds float64, code int) {
	s.t.Helper()
	s.write(seconds, ref{"update", user, entry.ConfigResource, "", "chaos", "settings"}, code, nil)
}

// minutely is a RestartSchedule of every minute.
func (s *fixture) minutely(seconds float64, suspended bool) {
	s.t.Helper()
	schedule := &refitv1alpha1.RestartSchedule{
		TypeMeta: metav1.TypeMeta{Kind: refitv1alpha1.KindRestartSchedule, APIVersion: refitAPI}, ObjectMeta: metav1.ObjectMeta{Name: "minutely"},
	}
	schedule.Spec.Schedule, schedule.Spec.Suspend = "* * * * *", suspended
	s.write(seconds, ref{"patch", user, entry.ScheduleResource, "", "chaos", "minutely"}, 200, schedule)
}

// created is a rollout that the manager has created, and that has ended at once as there are no pods.
func (s *fixture) created(seconds float64, name, trigger string) {
	s.t.Helper()
	s.revision++
	r := &refitv1alpha1.RestartRollout{
		TypeMeta: metav1.TypeMeta{Kind: refitv1alpha1.KindRestartRollout, APIVersion: refitAPI},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "chaos", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, s.revision)), ResourceVersion: fmt.Sprint(s.revision),
			Annotations: map[string]string{refitv1alpha1.AnnotationTrigger: trigger},
		},
	}
	r.Status.Conditions = []metav1.Condition{{Type: "Finished", Status: metav1.ConditionTrue}, {Type: "Succeeded", Status: metav1.ConditionTrue}}
	s.write(seconds, ref{"create", managerUser, entry.RolloutResource, "", "chaos", name}, 201, r)
}

const ofSettings, ofMinutely = "ConfigMap/settings", "RestartSchedule/minutely"

// minute is the name of the rollout for a time of the schedule.
func minute(seconds float64) string { return fmt.Sprintf("minutely-%d", at(seconds).Unix()/60) }

func TestGoodTriggers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		play      func(*fixture)
		triggered int
		scheduled int
	}{
		"a change, and two at once": {triggered: 2, play: func(s *fixture) {
			s.watch(2)
			s.change(10, 200)
			s.created(16, "web-1", ofSettings)
			s.change(30, 200)
			s.change(31, 200)
			s.created(38, "web-2", ofSettings)
		}},
		"a change that was stored although nobody says so": {triggered: 1, play: func(s *fixture) {
			s.watch(2)
			s.change(10, 504)
			s.created(16, "web-1", ofSettings)
		}},
		"a change while the manager is away": {triggered: 1, play: func(s *fixture) {
			s.watch(2)
			s.change(10, 200)
			s.fault(entry.KindManagerKill, 11, 120, true)
			s.created(130, "web-1", ofSettings)
		}},
		"a schedule until it is suspended": {scheduled: 2, play: func(s *fixture) {
			s.minutely(2, false)
			s.created(60.5, minute(60), ofMinutely)
			s.created(130, minute(120), ofMinutely)
			s.minutely(150, true)
		}},
		"a time that was missed is made up for by a later one": {scheduled: 1, play: func(s *fixture) {
			s.minutely(2, false)
			s.fault(entry.KindManagerKill, 50, 170, true)
			s.created(175, minute(120), ofMinutely)
			s.minutely(178, true)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opening(t)
			test.play(s)
			report := s.check()
			if !report.OK() || report.Totals.Triggered != test.triggered || report.Totals.Scheduled != test.scheduled {
				t.Errorf("violations %v, refused %v, %+v", report.Violations, report.Refused, report.Totals)
			}
		})
	}
}

func TestPlantedTriggers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"two rollouts for a change, as by a manager that has forgotten": {want: "I16", proof: "is rollout 2 for 1 changes", plant: func(s *fixture) {
			s.watch(2)
			s.change(10, 200)
			s.created(16, "web-1", ofSettings)
			s.created(30, "web-2", ofSettings)
		}},
		"a rollout before the change": {want: "I16", proof: "is rollout 1 for 0 changes", plant: func(s *fixture) {
			s.watch(2)
			s.created(9, "web-1", ofSettings)
			s.change(10, 200)
			s.created(16, "web-2", ofSettings)
		}},
		"a change that nobody notices": {want: "I16", proof: "followed by no rollout", plant: func(s *fixture) {
			s.watch(2)
			s.change(10, 200)
			s.created(16, "web-1", ofSettings)
			s.change(30, 200)
		}},
		"a change that is forgotten with a manager": {want: "I16", proof: "followed by no rollout", plant: func(s *fixture) {
			s.watch(2)
			s.change(10, 200)
			s.fault(entry.KindManagerKill, 11, 40, true)
		}},
		"a time without a rollout": {want: "I16", proof: "the time 10:02:00 had no rollout", plant: func(s *fixture) {
			s.minutely(2, false)
			s.created(60.5, minute(60), ofMinutely)
		}},
		"a time twice": {want: "I16", proof: "the second for the time 10:01:00", plant: func(s *fixture) {
			s.minutely(2, false)
			s.created(60.5, minute(60), ofMinutely)
			s.created(70, minute(60), ofMinutely)
			s.minutely(80, true)
		}},
		"before its time": {want: "I16", proof: "before its time 10:01:00", plant: func(s *fixture) {
			s.minutely(2, false)
			s.created(30, minute(60), ofMinutely)
			s.minutely(80, true)
		}},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); found(t, test) })
	}
}
