package budget

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/refit-project/refit/internal/foreign"
)

// Disruptions counts the disruptions that PodDisruptionBudgets still allow. It subtracts what the status of a budget
// does not show yet: ready pods on which an operation is in progress, and pods that have become not ready since the
// status was written.
type Disruptions struct{ budgets []disruption }

type disruption struct {
	name    string
	selects labels.Selector
	// left is how many ready pods may be disrupted, and spare how many pods are healthy beyond the required number.
	left, spare int32
	// unready says that pods that are not ready may be disrupted although not enough pods are healthy.
	unready bool
	desired int32
}

// NewDisruptions reads the budgets of a namespace. pods are all known pods of the namespace, whoever they belong to.
func NewDisruptions(budgets []*policyv1.PodDisruptionBudget, pods []Pod) *Disruptions {
	d := &Disruptions{}
	for _, object := range budgets {
		selector, readable := Selector(object)
		if !readable {
			d.budgets = append(d.budgets, disruption{name: object.Name, selects: selector, spare: -1})
			continue
		}
		d.budgets = append(d.budgets, newDisruption(object, selector, pods))
	}
	return d
}

// Selector returns the selector of a PodDisruptionBudget. A selector that is out of bounds is not readable: it counts
// as selecting every pod of the namespace and allowing no disruption, because it may protect any of them.
func Selector(object *policyv1.PodDisruptionBudget) (selector labels.Selector, readable bool) {
	selector, err := foreign.Selector(object.Spec.Selector)
	if err != nil {
		return labels.Everything(), false
	}
	return selector, true
}

func newDisruption(object *policyv1.PodDisruptionBudget, selector labels.Selector, pods []Pod) disruption {
	status, policy := &object.Status, object.Spec.UnhealthyPodEvictionPolicy
	b := disruption{
		name: object.Name, selects: selector, left: status.DisruptionsAllowed, spare: status.CurrentHealthy - status.DesiredHealthy,
		desired: status.DesiredHealthy, unready: policy != nil && *policy == policyv1.AlwaysAllow,
	}
	if status.ObservedGeneration < object.Generation { // the disruption controller has not observed its last change
		b.left, b.spare, b.unready = 0, -1, false
	}
	var selected, unready, ending int32
	for i := range pods {
		p := &pods[i]
		if !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		selected++
		switch {
		case !p.Ready:
			unready++
		case p.UnderWay:
			ending++
		}
	}
	ending += outdated(status, selected, unready)
	b.left, b.spare = b.left-ending, b.spare-ending
	return b
}

// outdated returns how many pods at least the status of a budget counts as healthy although they are not ready: of all
// pods that it expects, or that exist, some are not ready.
func outdated(status *policyv1.PodDisruptionBudgetStatus, selected, unready int32) int32 {
	return max(0, status.CurrentHealthy-(max(status.ExpectedPods, selected)-unready))
}

// Take uses one disruption of every budget that selects the pod, or returns the name of one that does not allow it. For
// a pod that is not ready it applies the rules of evictions (KEP-3017): the pod may be disrupted if enough others are
// healthy. It does not check pods on which an operation is in progress, because they count already, and pods that
// cannot become ready by themselves.
func (d *Disruptions) Take(p *Pod) string {
	if d == nil || p.UnderWay || p.Stuck {
		return ""
	}
	var of []*disruption
	for i := range d.budgets {
		b := &d.budgets[i]
		if !b.selects.Matches(labels.Set(p.Labels)) {
			continue
		}
		if !b.allows(p) {
			return b.name
		}
		of = append(of, b)
	}
	if p.Ready {
		for _, b := range of {
			b.left--
			b.spare--
		}
	}
	return ""
}

func (b *disruption) allows(p *Pod) bool {
	return b.left > 0 || !p.Ready && (b.unready || b.desired > 0 && b.spare >= 0)
}
