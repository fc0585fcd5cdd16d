package budget

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Disruptions counts what PodDisruptionBudgets still allow. What the status of one does not show yet is subtracted: pods on which
// something is under way while they are ready, and pods that have become not ready since it was written.
type Disruptions struct{ budgets []disruption }

type disruption struct {
	name    string
	selects labels.Selector
	// left is how many ready pods may be taken out, spare how many pods are healthy beyond those that have to be.
	left, spare int32
	// unready: pods that are not ready may be taken out although not enough are healthy.
	unready bool
	desired int32
}

// NewDisruptions reads the budgets of a namespace. Pods are all that are known of it, whoever they belong to.
func NewDisruptions(budgets []*policyv1.PodDisruptionBudget, pods []Pod) *Disruptions {
	d := &Disruptions{}
	for _, object := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
		if err != nil {
			continue // the API server refuses such selectors
		}
		d.budgets = append(d.budgets, newDisruption(object, selector, pods))
	}
	return d
}

func newDisruption(object *policyv1.PodDisruptionBudget, selector labels.Selector, pods []Pod) disruption {
	status, policy := &object.Status, object.Spec.UnhealthyPodEvictionPolicy
	b := disruption{
		name: object.Name, selects: selector, left: status.DisruptionsAllowed, spare: status.CurrentHealthy - status.DesiredHealthy,
		desired: status.DesiredHealthy, unready: policy != nil && *policy == policyv1.AlwaysAllow,
	}
	if status.ObservedGeneration < object.Generation { // the controller of budgets has not seen its last change
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

// outdated is how many pods at least the status of a budget counts as healthy although they are not: of all that it expects,
// or that there are, some are not ready.
func outdated(status *policyv1.PodDisruptionBudgetStatus, selected, unready int32) int32 {
	return max(0, status.CurrentHealthy-(max(status.ExpectedPods, selected)-unready))
}

// Take uses one disruption of every budget that selects the pod, or returns the name of one that does not allow it. The rules for a
// pod that is not ready are those of evictions (KEP-3017): it may go if enough others are healthy. Not asked are pods on which
// something is under way, which count already, and those that cannot become ready by themselves.
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
