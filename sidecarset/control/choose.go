package control

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/control/beside"
	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// decide calls choose while no other controller of the manager decides. others are the pods on which other controllers
// have recently begun an operation. From then on the pods that choose returns count for them in the same way.
func (r *reconciler) decide(s *set, choose func(others map[types.UID]time.Time) []types.UID) {
	r.Disruptions.DecideBeside("SidecarSet "+s.object.Name, func(others map[types.UID]time.Time) []types.UID {
		s.mu.Lock()
		defer s.mu.Unlock()
		return choose(others)
	})
}

// choose selects the pods to update now. begin says that the caller will update them.
func (r *reconciler) choose(ctx context.Context, s *set, begin bool) (selection rollout.Selection, err error) {
	r.decide(s, func(others map[types.UID]time.Time) (begun []types.UID) {
		now := r.Clock()
		budgets := beside.NewBudgets(r.client, r.Guard, func(pod *corev1.Pod) bool { return s.busy(pod, others) }, now)
		in := func(namespace string) *budget.Disruptions { return budgets.In(ctx, namespace) }
		selection = s.choose(&rollout.Beside{Begun: others, Gone: s.repair.UnderWay(), Ending: s.ending(), Disruptions: in}, now)
		selection.Again = selection.Again.Or(budgets.Again.Time)
		if err = budgets.Err; err != nil {
			selection.Pods = nil
		}
		if begin {
			for _, key := range selection.Pods {
				pod, _ := s.fleet.Get(key)
				begun = append(begun, pod.UID)
			}
		}
		return begun
	})
	return selection, err
}

// choose selects the pods to update now. The caller holds the lock.
func (s *set) choose(beside *rollout.Beside, now time.Time) rollout.Selection {
	s.countEvictions(true)
	beside.Doubtful = missed.Doubtful(s.notInjected(), now)
	selection := s.fleet.Select(&s.strategy, now, beside)
	s.held, s.holders, s.disruption = selection.Held, selection.Holders, selection.Disruption
	return selection
}

// busy reports whether an operation is in progress on a pod that the cache may not show yet. The caller holds the lock.
func (s *set) busy(pod *corev1.Pod, others map[types.UID]time.Time) bool {
	own, _ := s.fleet.Get(client.ObjectKeyFromObject(pod))
	return own.InFlight && own.UID == pod.UID || !others[pod.UID].IsZero()
}
