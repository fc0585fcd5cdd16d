package rollout

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/kubelet"
)

// start adds the requests that may be created now, and says what holds up the pods that are left.
func (v *view) start(budgets []*policyv1.PodDisruptionBudget) (reason, message string) {
	spec := &v.rollout.Spec
	chosen := v.pods[:max(0, len(v.pods)-int(spec.Partition))]
	var left []*pod
	for _, p := range chosen {
		if p.stage == waiting {
			left = append(left, p)
		}
	}
	switch {
	case spec.Paused:
		return v1alpha1.ReasonPaused, fmt.Sprintf("spec.paused is set: %d pods are left", len(left))
	case len(left) == 0 && spec.Partition > 0:
		return v1alpha1.ReasonPartition, fmt.Sprintf("spec.partition leaves %d pods as they are", min(int(spec.Partition), len(v.pods)))
	case v.stopped():
		return v1alpha1.ReasonRestarting, "a restart has failed: waiting for the restarts under way to end"
	}
	limit := v.limit()
	free := limit - int(v.decision.Status.Unavailable)
	disruptions := newDisruptions(budgets, v.all)
	var heldBy string
	for _, available := range []bool{false, true} { // an unavailable pod costs nothing
		for _, p := range left {
			if p.available != available || available && free <= 0 {
				continue
			}
			if available && !spec.IgnorePodDisruptionBudgets {
				if name := disruptions.take(p); name != "" {
					heldBy = name
					continue
				}
			}
			v.decision.Start = append(v.decision.Start, request(v.rollout, p.Pod))
			if available {
				free--
			}
		}
	}
	switch started := len(v.decision.Start); {
	case started == len(left):
		return v1alpha1.ReasonRestarting, "every pod that is to be restarted has a ContainerRecreateRequest"
	case heldBy != "" && free > 0:
		return v1alpha1.ReasonDisruptionBudget, fmt.Sprintf("PodDisruptionBudget %s allows no more disruptions: %d pods are left", heldBy, len(left)-started)
	default:
		return v1alpha1.ReasonBudget, fmt.Sprintf("%d pods are left; %d of %d pods may be unavailable at a time", len(left)-started, limit, v.size())
	}
}

// stopped reports whether failures keep further pods from being restarted.
func (v *view) stopped() bool {
	refused := 0
	for _, p := range v.pods {
		if p.stage == failed && p.failure.Reason == ReasonRefused {
			refused++
		}
	}
	return v.decision.Status.Failed > 0 && v.rollout.Spec.FailurePolicy != v1alpha1.RolloutFailureContinue || refused >= MaxFailures
}

// limit is how many pods may be unavailable.
func (v *view) limit() int {
	limit := v.rollout.Spec.MaxUnavailable
	if limit == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(limit, v.size(), false)
	if err != nil {
		return 1 // the CRD refuses such values
	}
	return max(n, 1)
}

// disruptions counts what PodDisruptionBudgets still allow. What the status of the budget does not show yet is subtracted: a
// restart that has started while the pod is ready, and pods that have become not ready since it was written.
type disruptions struct {
	budgets []budget
}

type budget struct {
	name    string
	selects labels.Selector
	left    int32
}

func newDisruptions(budgets []*policyv1.PodDisruptionBudget, pods []*pod) *disruptions {
	d := &disruptions{}
	for _, object := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
		if err != nil {
			continue // the API server refuses such selectors
		}
		b := budget{name: object.Name, selects: selector, left: object.Status.DisruptionsAllowed}
		if object.Status.ObservedGeneration < object.Generation {
			b.left = 0 // the controller of budgets has not seen its last change
		}
		var selected, unready int32
		for _, p := range pods {
			if !selector.Matches(labels.Set(p.Labels)) {
				continue
			}
			selected++
			switch ready, _ := readiness(p.Pod); {
			case !ready:
				unready++
			case !p.available:
				b.left--
			}
		}
		b.left -= outdated(&object.Status, selected, unready)
		d.budgets = append(d.budgets, b)
	}
	return d
}

// outdated is how many pods at least the status of a budget counts as healthy although they are not: of all that it expects,
// or that there are, some are not ready.
func outdated(status *policyv1.PodDisruptionBudgetStatus, selected, unready int32) int32 {
	return max(0, status.CurrentHealthy-(max(status.ExpectedPods, selected)-unready))
}

// take uses one disruption of every budget that selects the pod, or returns the name of the one that has none left.
func (d *disruptions) take(p *pod) string {
	var of []*budget
	for i := range d.budgets {
		if b := &d.budgets[i]; b.selects.Matches(labels.Set(p.Labels)) {
			if b.left <= 0 {
				return b.name
			}
			of = append(of, b)
		}
	}
	for _, b := range of {
		b.left--
	}
	return ""
}

// readiness of a pod, and since when.
func readiness(p *corev1.Pod) (ready bool, since metav1.Time) {
	if c := kubelet.Condition(&p.Status, corev1.PodReady); c != nil {
		return c.Status == corev1.ConditionTrue, c.LastTransitionTime
	}
	return false, since
}
