package history_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// rolloutEnds is the status at the end of a rollout, with the type of the condition of its outcome and its reason.
func rolloutEnds(outcome, reason string, restarted, restarting int32) func(*refitv1alpha1.RestartRollout) {
	return func(r *refitv1alpha1.RestartRollout) {
		r.Status.Restarted, r.Status.Restarting = restarted, restarting
		r.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue}, {Type: outcome, Status: metav1.ConditionTrue, Reason: reason}}
	}
}

func failsAt(seconds float64) func(*v1beta1.ContainerRecreateRequestStatus) {
	return completed(seconds, "deadline exceeded")
}

// outages are histories in which Refit takes too much away, as they were seen on running clusters.
var outages = map[string]struct {
	replicas int
	play     func(*shop)
	want     []string // the invariants that find it
}{
	"a rollout just after a start: all are stopped, and serve before they end": {replicas: 3, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.down(10, "w0", "w1", "w2")
		s.rollout(11, "r", nil)
		for _, uid := range s.uids {
			s.orders(12, "r", uid)
		}
		s.up(19, "w0", "w1", "w2")
		s.starts(34, "w0", "app")
		s.starts(34.5, "w1", "app")
		s.starts(35.5, "w2", "app")
	}},
	"a rollout of pods that are ready since less than minReadySeconds": {replicas: 3, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.rollout(11, "r", nil)
		for _, uid := range s.uids {
			s.orders(12, "r", uid)
		}
		s.down(13, "w0", "w1", "w2")
	}},
	"readiness fails for 4 s on the other pods during a rollout": {replicas: 3, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.rollout(11, "r", nil)
		s.orders(12, "r", "w0")
		s.down(13, "w0")
		s.down(24, "w1", "w2")
		s.orders(25, "r", "w1")
		s.orders(25.2, "r", "w2")
		s.up(28, "w1", "w2")
		s.starts(29, "w1", "app")
		s.starts(29.1, "w2", "app")
	}},
	"a rollout waits for a budget of 0 and takes what is not ready for a moment": {replicas: 3, want: []string{"I20"}, play: func(s *shop) {
		s.budget(5, 0, 3, 3)
		s.rollout(11, "r", nil)
		s.down(20, "w1")
		s.budget(20.1, 0, 2, 3)
		s.orders(27, "r", "w1")
	}},
	"a rollout takes what serves although a budget allows nothing": {replicas: 3, want: []string{"I20"}, play: func(s *shop) {
		s.budget(5, 0, 3, 3)
		s.rollout(11, "r", nil)
		s.orders(27, "r", "w1")
	}},
	"readiness fails for 4 s on the other pods during the rollout of a SidecarSet": {replicas: 3, want: []string{"I19"}, play: func(s *shop) {
		s.updates(12, managerUser, "w0", "x1")
		s.down(13, "w0")
		s.down(20, "w1", "w2")
		s.updates(21, managerUser, "w1", "x1")
		s.updates(21.1, managerUser, "w2", "x1")
	}},
	"a SidecarSet updates all pods that are not ready yet, and they serve before their sidecars end": {replicas: 3, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.down(10, "w0", "w1", "w2")
		for _, uid := range s.uids {
			s.updates(12, managerUser, uid, "x1")
		}
		s.up(19, "w0", "w1", "w2")
		s.starts(32, "w0", "x1")
		s.starts(32.1, "w1", "x1")
		s.starts(32.2, "w2", "x1")
	}},
	"readiness fails on the other pods while a SidecarSet has one evicted": {replicas: 3, want: []string{"I19"}, play: func(s *shop) {
		s.evicts(12, "w0")
		s.down(20, "w1", "w2")
		s.evicts(20.4, "w1")
		s.evicts(21, "w2")
	}},
	"two SidecarSets choose different pods": {replicas: 2, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.updates(12, managerUser, "w0", "x1")
		s.updates(12.4, managerUser, "w1", "x2")
		s.starts(13.7, "w0", "x1")
		s.starts(13.8, "w1", "x2")
	}},
	"a RestartRollout beside a SidecarSet": {replicas: 3, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.updates(12, managerUser, "w0", "x1")
		s.rollout(12.1, "r", nil)
		s.orders(12.9, "r", "w1")
		s.starts(13, "w0", "x1")
		s.down(13.4, "w1")
	}},
	"a RestartRollout beside what a user has ordered": {replicas: 3, want: []string{"I19"}, play: func(s *shop) {
		s.updates(12, user, "w0", "x1")
		s.rollout(12.1, "r", nil)
		s.orders(15, "r", "w1")
	}},
	"a schedule replaces a rollout whose stop is under way": {replicas: 3, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.rollout(11, "r1", nil)
		request := s.orders(12, "r1", "w0")
		s.write(20, ref{"delete", managerUser, entry.RequestResource, "", "chaos", request}, 200, nil)
		s.rollout(21, "r2", nil)
		s.orders(22, "r2", "w1")
		s.starts(30, "w0", "app")
		s.starts(38, "w1", "app")
	}},
	"a rollout after one that its deadline has ended": {replicas: 3, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.rollout(11, "r1", nil)
		s.orders(12, "r1", "w0")
		s.rollout(20, "r1", rolloutEnds("Failed", "DeadlineExceeded", 0, 1))
		s.rollout(21, "r2", nil)
		s.orders(22, "r2", "w1")
		s.starts(30, "w0", "app")
		s.starts(38, "w1", "app")
	}},
	"a request fails at its deadline while its container is being stopped": {replicas: 4, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.rollout(11, "r", nil)
		first := s.orders(12, "r", "w0")
		s.status(20, first, failsAt(20))
		s.orders(20.5, "r", "w1")
		s.starts(31, "w0", "app")
		s.starts(39, "w1", "app")
	}},
	"one serves, one was not ready for long": {replicas: 3, want: []string{"I18"}, play: func(s *shop) {
		s.rollout(11, "r", nil)
		s.down(12, "w0")
		s.orders(30, "r", "w1")
	}},
	"one serves, one is missing": {replicas: 3, want: []string{"I18"}, play: func(s *shop) {
		s.deployment(10, 4)
		s.rollout(11, "r", nil)
		s.orders(30, "r", "w1")
	}},
	"a rollout says for ever that it restarts a pod": {replicas: 3, want: []string{"I21"}, play: func(s *shop) {
		s.rollout(11, "r", nil)
		request := s.orders(12, "r", "w0")
		s.rollout(20, "r", rolloutEnds("Failed", "DeadlineExceeded", 0, 1))
		s.starts(30, "w0", "app")
		s.up(35, "w0")
		s.succeeds(36, request)
	}},
	"a rollout calls none restarted although the container has changed": {replicas: 3, want: []string{"I21"}, play: func(s *shop) {
		s.rollout(11, "r", nil)
		request := s.orders(12, "r", "w0")
		s.status(20, request, failsAt(20))
		s.starts(22, "w0", "app")
		s.up(30, "w0")
		s.rollout(40, "r", rolloutEnds("Failed", "PodsFailed", 0, 0))
	}},
	"a rollout ends while a container is being stopped": {replicas: 3, want: []string{"I21"}, play: func(s *shop) {
		s.rollout(11, "r", nil)
		request := s.orders(12, "r", "w0")
		s.status(20, request, failsAt(20))
		s.rollout(20.5, "r", rolloutEnds("Failed", "PodsFailed", 0, 0))
		s.starts(30, "w0", "app")
	}},
}

func TestPlantedOutages(t *testing.T) {
	t.Parallel()
	for name, test := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, test.replicas)
			test.play(s)
			var found []string
			for _, v := range s.availability() {
				found = append(found, v.Invariant)
				if len(v.Proof) == 0 {
					t.Errorf("%s: no lines that prove it", v)
				}
			}
			slices.Sort(found)
			if found = slices.Compact(found); !slices.Equal(found, test.want) {
				t.Errorf("violations of %v, want %v: %v", found, test.want, s.availability())
			}
		})
	}
}

// What is close to an outage by Refit and is none.
func TestGoodRestartsOfWorkloads(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*shop){
		"one pod after the other, with a budget": func(s *shop) {
			s.budget(5, 1, 3, 2)
			s.rollout(11, "r", nil)
			for n, uid := range s.uids {
				begin := float64(20 + 10*n)
				s.restarts(begin, "r", uid)
				s.budget(begin+5, 1, 3, 2)
			}
			s.rollout(60, "r", rolloutEnds("Succeeded", "", 3, 0))
		},
		"what is not ready comes first, one at a time": func(s *shop) {
			s.down(10, "w0", "w1", "w2")
			s.rollout(11, "r", nil)
			for n, uid := range s.uids {
				s.restarts(float64(20+10*n), "r", uid)
			}
		},
		"all readiness fails by itself while one is restarted": func(s *shop) {
			s.rollout(11, "r", nil)
			request := s.orders(12, "r", "w0")
			s.down(13, "w0", "w1", "w2")
			s.up(17, "w1", "w2")
			s.starts(18, "w0", "app")
			s.up(20, "w0")
			s.succeeds(21, request)
		},
		"one is taken just when another one fails": func(s *shop) {
			s.rollout(11, "r", nil)
			s.down(12, "w0")
			s.orders(14, "r", "w1")
		},
		"a node with two pods is lost while one is restarted": func(s *shop) {
			s.rollout(11, "r", nil)
			s.orders(12, "r", "w0")
			s.faultOn("node-1", entry.KindNodeLost, 13, 60)
			s.down(14, "w0", "w1", "w2")
		},
		"three that cannot come back by themselves": func(s *shop) {
			s.budget(5, 0, 0, 3)
			for _, uid := range s.uids {
				s.shows(10, uid, func(p *corev1.Pod) {
					readiness(p, corev1.ConditionFalse)
					p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
				})
			}
			s.rollout(18, "r", nil)
			for _, uid := range s.uids {
				s.orders(20, "r", uid)
			}
		},
		"two SidecarSets and a rollout on one pod": func(s *shop) {
			s.updates(12, managerUser, "w0", "x1")
			s.updates(12.4, managerUser, "w0", "x2")
			s.rollout(12.5, "r", nil)
			s.orders(13, "r", "w0")
		},
		"a pod that a user has just begun, of which nobody knows yet": func(s *shop) {
			s.rollout(11, "r", nil)
			s.updates(12, user, "w0", "x1")
			s.orders(13, "r", "w1")
		},
		"the next rollout waits until a stop is over": func(s *shop) {
			s.rollout(11, "r1", nil)
			request := s.orders(12, "r1", "w0")
			s.write(20, ref{"delete", managerUser, entry.RequestResource, "", "chaos", request}, 200, nil)
			s.rollout(21, "r2", nil)
			s.starts(30, "w0", "app")
			s.up(34, "w0")
			s.orders(35, "r2", "w1")
			s.starts(38, "w1", "app")
		},
		"a grace period has passed, and nothing is known of the stop": func(s *shop) {
			s.rollout(11, "r", nil)
			request := s.orders(12, "r", "w0")
			s.status(20, request, failsAt(20))
			s.orders(12.1+grace, "r", "w1")
		},
		"one that is not ready, as the budget is met": func(s *shop) {
			s.budget(5, 1, 3, 2)
			s.rollout(11, "r", nil)
			s.down(12, "w0")
			s.budget(12.1, 0, 2, 2)
			s.restarts(20, "r", "w0")
		},
		"a budget that is about to allow one more": func(s *shop) {
			s.budget(5, 0, 2, 2)
			s.down(6, "w0")
			s.rollout(11, "r", nil)
			s.up(19, "w0")
			s.budget(19.5, 1, 3, 2)
			s.orders(25, "r", "w1")
		},
		"a rollout that is told to ignore budgets": func(s *shop) {
			s.budget(5, 0, 3, 3)
			s.rollout(11, "r", func(r *refitv1alpha1.RestartRollout) { r.Spec.IgnorePodDisruptionBudgets = true })
			s.restarts(20, "r", "w0")
		},
		"evicted one after the other": func(s *shop) {
			s.evicts(12, "w0")
			s.arrive(14)
			s.evicts(20, "w1")
			s.arrive(22)
		},
		"a deadline ends a rollout, whose status follows": func(s *shop) {
			s.rollout(11, "r", nil)
			request := s.orders(12, "r", "w0")
			s.rollout(20, "r", rolloutEnds("Failed", "DeadlineExceeded", 0, 1))
			s.starts(30, "w0", "app")
			s.up(35, "w0")
			s.succeeds(36, request)
			s.rollout(37, "r", rolloutEnds("Failed", "DeadlineExceeded", 1, 0))
		},
		"the watch of the client was broken": func(s *shop) {
			s.line(&s.watched, entry.WatchedLine{At: at(11), Event: entry.WatchLost, Kind: entry.KindBudget})
			s.rollout(11, "r", nil)
			s.orders(20, "r", "w0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, 3)
			play(s)
			if violations := s.availability(); len(violations) > 0 {
				t.Errorf("violations %v", violations)
			}
			if totals := s.check().Totals; totals.Taken == 0 {
				t.Errorf("totals %+v: nothing was judged", totals)
			}
		})
	}
}

func TestTakesAreReportedByWhoBeganThem(t *testing.T) {
	t.Parallel()
	s := openShop(t, 3)
	outages["a RestartRollout beside a SidecarSet"].play(s)
	for _, want := range []string{"pod w1 was begun by RestartRollout r while 1 others were under way; at most 1 may be", "2 pods that served are out of web by Refit"} {
		if !slices.ContainsFunc(s.availability(), func(v verdict.Violation) bool { return strings.Contains(v.What, want) }) {
			t.Errorf("violations %v, none with %q", s.availability(), want)
		}
	}
}
