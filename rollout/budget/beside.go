package budget

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// Beside has the PodDisruptionBudgets of a namespace, and the pods that they may select in addition to the pods of a
// workload.
type Beside struct {
	Budgets []*policyv1.PodDisruptionBudget
	// Pods are the other pods, and pods of the workload that are being deleted.
	Pods []*corev1.Pod
	// Requests are the requests of the namespace, by the name of the pod.
	Requests map[string][]*v1beta1.ContainerRecreateRequest
	// Begun reports whether somebody else has begun an operation on a pod that the objects may not show yet; nil means
	// never.
	Begun func(types.UID) bool
}

// Disruptions returns what the budgets that select pods of the workload still allow; nil if there are none.
func (b *Beside) Disruptions(workload []Pod, now time.Time) *Disruptions {
	var budgets []*policyv1.PodDisruptionBudget
	var selectors []labels.Selector
	for _, object := range b.Budgets {
		selector, _ := Selector(object)
		if slices.ContainsFunc(workload, func(p Pod) bool { return selector.Matches(labels.Set(p.Labels)) }) {
			budgets, selectors = append(budgets, object), append(selectors, selector)
		}
	}
	if len(budgets) == 0 {
		return nil
	}
	pods := slices.Clone(workload)
	for _, other := range b.Pods {
		selected := slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(other.Labels)) })
		if crr.PodEnded(other) || !selected {
			continue
		}
		p, _ := Observe(other, b.Requests[other.Name], 0, now)
		p.UnderWay = p.UnderWay || b.Begun != nil && b.Begun(other.UID)
		pods = append(pods, p)
	}
	return NewDisruptions(budgets, pods)
}

// Scaled returns a number, or a percentage of a total. otherwise is the result for nil, and for a value that is neither, which
// admission refuses.
func Scaled(value *intstr.IntOrString, total int, roundUp bool, otherwise int) int {
	if value == nil {
		return otherwise
	}
	number, err := intstr.GetScaledValueFromIntOrPercent(value, total, roundUp)
	if err != nil {
		return otherwise
	}
	return max(number, 0)
}
