package history_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// rolloutEnds is the status at the end of a rollout, with the type of the condition of its outcome and its reason.
func rolloutEnds(outcome, reason string, restarted, restarting int32) func(*refitv1alpha1.RestartRollout) {
	return func(r *refitv1alpha1.RestartRollout) {
		r.Status.RestartedPods, r.Status.RestartingPods = restarted, restarting
		r.Status.Conditions = []metav1.Condition{{Type: "Finished", Status: metav1.ConditionTrue}, {Type: outcome, Status: metav1.ConditionTrue, Reason: reason}}
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
	"a rollout that waits for a budget of 0 takes what has failed just now": {replicas: 3, want: []string{"I20"}, play: func(s *shop) {
		s.budget(5, 0, 3, 3)
		s.rollout(11, "r", nil)
		s.down(20, "w1")
		s.budget(20.1, 0, 2, 3)
		s.orders(20.3, "r", "w1")
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
	"two are out, and then their Deployment is deleted": {replicas: 4, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.rollout(11, "r", nil)
		s.orders(12, "r", "w0")
		s.orders(12.1, "r", "w1")
		s.down(13, "w0", "w1")
		for n, uid := range s.uids {
			s.write(20+0.01*float64(n), ref{"delete", user, "pods", "", "chaos", uid}, 200, nil)
		}
		s.down(20.2, "w2", "w3")
	}},
	"one was ready only before it was updated, as is known late": {replicas: 2, want: []string{"I19"}, play: func(s *shop) {
		s.started(10, "w0", "x1", 1, 10)
		s.updates(12, managerUser, "w0", "x1")
		s.started(16, "w0", "x1", 15, 15)
		s.updates(23, managerUser, "w1", "x1")
	}},
	"one has not been ready since its update": {replicas: 2, want: []string{"I19"}, play: func(s *shop) {
		s.updates(12, managerUser, "w0", "x1")
		s.starts(13, "w0", "x1")
		s.unready(13.1, "w0", 13)
		s.unready(23, "w0", 13)
		s.updates(23.1, managerUser, "w1", "x1")
	}},
	"one is being deleted in its update, and nothing has replaced it": {replicas: 3, want: []string{"I19"}, play: func(s *shop) {
		s.updates(12, managerUser, "w0", "x1")
		s.deletes(15, "w0")
		s.updates(17, managerUser, "w1", "x1")
	}},
	"one was evicted, what replaces it is updated, and another is restarted": {replicas: 4, want: []string{"I19"}, play: func(s *shop) {
		s.rollout(11, "r", atMost(2))
		s.evicts(12, "w0")
		s.begin(14)
		s.updates(15, managerUser, "w4", "x1")
		s.down(16, "w1")
		s.orders(17, "r", "w1")
		s.orders(18, "r", "w2")
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
	"two SidecarSets, long after lines that could be missing": {replicas: 2, want: []string{"I17", "I19"}, play: func(s *shop) {
		s.fault(entry.KindAPIServerKill, 2, 6, true)
		s.up(20, "w0", "w1")
		s.updates(32, managerUser, "w0", "x1")
		s.updates(32.4, managerUser, "w1", "x2")
		s.starts(33.7, "w0", "x1")
		s.starts(33.8, "w1", "x2")
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
