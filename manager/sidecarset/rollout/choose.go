package rollout

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/manager/sidecarset/beside"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// decide calls choose while no other controller of the manager decides. Others are the pods on which those have begun something
// lately. The pods that it returns count as under way for them from then on.
func (r *reconciler) decide(s *set, choose func(others map[types.UID]time.Time) []types.UID) {
	r.Disruptions.DecideBeside("SidecarSet "+s.object.Name, func(others map[types.UID]time.Time) []types.UID {
		s.mu.Lock()
		defer s.mu.Unlock()
		return choose(others)
	})
}

// choose selects the pods that are to be updated now. Begin says that they will be.
func (r *reconciler) choose(ctx context.Context, s *set, begin bool) (selection rollout.Selection, err error) {
	r.decide(s, func(others map[types.UID]time.Time) (begun []types.UID) {
		now := r.Clock()
		budgets := beside.NewBudgets(r.client, func(pod *corev1.Pod) bool { return s.busy(pod, others) }, now)
		in := func(namespace string) *budget.Disruptions { return budgets.In(ctx, namespace) }
		selection = s.choose(&rollout.Beside{Begun: others, Gone: s.repair.UnderWay(), Disruptions: in}, now)
		selection.Again = rollout.Earliest(selection.Again, budgets.Again)
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

// choose selects the pods that are to be updated now. The lock is held.
func (s *set) choose(beside *rollout.Beside, now time.Time) rollout.Selection {
	strategy, doubtful := s.strategy, time.Time{}
	s.adopt(true)
	if strategy.Recreate {
		doubtful = missed.DoubtfulUntil(s.notInjected, now)
		strategy.Recreate = doubtful.IsZero()
	}
	selection := s.fleet.Select(&strategy, now, beside)
	s.held, s.disruption, selection.Again = selection.Held, selection.Disruption, rollout.Earliest(selection.Again, doubtful)
	return selection
}

// busy reports whether something is under way on a pod that the cache may not show yet. The lock is held.
func (s *set) busy(pod *corev1.Pod, others map[types.UID]time.Time) bool {
	own, _ := s.fleet.Get(client.ObjectKeyFromObject(pod))
	return own.InFlight && own.UID == pod.UID || !others[pod.UID].IsZero()
}
