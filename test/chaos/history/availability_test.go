package history_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

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
		"requests that stop nothing, and the Deployment is deleted": func(s *shop) {
			s.rollout(11, "r", nil)
			s.status(20, s.orders(12, "r", "w0"), failsAt(20))
			s.status(58, s.orders(50, "r", "w1"), failsAt(58))
			for n, uid := range s.uids {
				s.write(90+0.01*float64(n), ref{"delete", user, "pods", "", "chaos", uid}, 200, nil)
			}
			s.down(90.2, "w0", "w1", "w2")
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
		"one was ready after its update and is not again, of which kubelet has reported only the end": func(s *shop) {
			s.updates(12, managerUser, "w0", "x1")
			s.starts(13, "w0", "x1")
			s.unready(13.1, "w0", 13)
			s.unready(16, "w0", 15)
			s.updates(17, managerUser, "w1", "x1")
		},
		"one was not ready before its update, and was ready for 6 s after it": func(s *shop) {
			s.started(10, "w0", "x1", 1, 10)
			s.updates(12, managerUser, "w0", "x1")
			s.started(21, "w0", "x1", 14, 20)
			s.updates(22, managerUser, "w1", "x1")
		},
		"one update takes back another, of which kubelet has done nothing": func(s *shop) {
			s.updates(12, managerUser, "w0", "x1")
			s.takesBack(13, "w0", "x1")
			s.up(14, "w0")
			s.updates(15, managerUser, "w1", "x1")
		},
		"one is being deleted in its update, and another one serves in its place": func(s *shop) {
			s.updates(12, managerUser, "w0", "x1")
			s.down(13, "w0")
			s.deletes(15, "w0")
			s.arrive(16)
			s.updates(17, managerUser, "w1", "x1")
			s.down(18, "w1")
		},
		"one was evicted, what replaces it is updated, and two may be under way": func(s *shop) {
			s.rollout(11, "r", atMost(2))
			s.evicts(12, "w0")
			s.begin(14)
			s.updates(15, managerUser, "w3", "x1")
			s.down(16, "w1")
			s.orders(17, "r", "w1")
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
			s.rollout(11, "r", func(r *refitv1alpha1.RestartRollout) {
				r.Spec.PodDisruptionBudgetPolicy = refitv1alpha1.PodDisruptionBudgetIgnore
			})
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
		"the line of a request's end may be missing": func(s *shop) {
			s.rollout(11, "r", nil)
			s.orders(12, "r", "w0")
			s.fault(entry.KindAPIServerKill, 20, 22, true)
			s.orders(25, "r", "w1")
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
