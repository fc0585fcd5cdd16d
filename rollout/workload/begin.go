package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/wording"
	"github.com/refit-project/refit/rollout/budget"
)

// begin begins the updates that the pace of the policy allows, and says why other pods have to wait.
func (v *view) begin(observed Observation) {
	v.failRefused(observed.Refused)
	left := v.outdated()
	failed := v.failures()
	switch {
	case failed > 0 && v.policy.Spec.FailurePolicy == v1alpha1.UpdateFailureUndo && v.decision.Status.UndoneRevision == "":
		v.undo("pods have failed")
	case failed > 0 && v.policy.Spec.FailurePolicy != v1alpha1.UpdateFailureContinue:
		v.set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonPodsFailed, fmt.Sprintf("%s: no further pod is updated; change the template, or repair the pods", wording.Count(failed, "pod has failed", "pods have failed")))
	case v.policy.Spec.Paused && !v.deleting():
		v.pausedFor("spec.paused is set: " + wording.Count(len(left), "pod is left", "pods are left"))
	case len(left) == 0 && v.size() > len(v.pods):
		v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonUpdating, "waiting for missing pods and updated pods to be available")
	case len(left) == 0:
		v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonUpdating, "waiting for updated pods to be available")
	case v.pulled(observed, left):
		if late, may := v.latePulls(observed, left); may {
			v.take(observed, left, ActionUpdate, &late)
		}
	}
}

// outdated returns the pods that do not have the template, in the order in which they are updated: pods that do not serve
// come first.
func (v *view) outdated() []*pod {
	var left []*pod
	for _, p := range v.pods {
		if p.stage == outdated && !p.excluded && p.failure == nil { // otherwise it has to be replaced, see refuseOne
			left = append(left, p)
		}
	}
	slices.SortStableFunc(left, func(a, b *pod) int { return cmp.Compare(a.budget.Rank(), b.budget.Rank()) })
	return left
}

// take makes as many pods unavailable as allowed. A pod whose image is pulled keeps its place.
func (v *view) take(observed Observation, left []*pod, kind ActionKind, late *latePulls) {
	allowed, reason, message := v.allowed()
	free := budget.New(v.limit(), v.counted(), v.size()-len(v.pods), 0, v.disruptions(observed))
	begun, pulling, heldBy := 0, false, ""
	for _, p := range left {
		if begun == allowed {
			break
		}
		switch hold, by := free.Take(&p.budget); hold {
		case "":
			if begun++; late.hold(p) {
				pulling = true
				continue
			}
			v.act(Action{Kind: kind, Pod: p.Pod})
			v.skip(late, p)
		case budget.HoldDisruption:
			heldBy = by
		}
	}
	switch rest := wording.Count(len(left)-begun, "pod is left", "pods are left"); {
	case pulling:
		v.pullLate(late)
	case begun == len(left):
		v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonUpdating, "the last pods are updated")
	case begun == allowed:
		v.set(v1alpha1.ConditionProgressing, true, reason, message)
	case heldBy != "":
		v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonDisruptionBudget, fmt.Sprintf("PodDisruptionBudget %s allows no more disruptions: %s", heldBy, rest))
	default:
		v.set(v1alpha1.ConditionProgressing, true, v1alpha1.ReasonBudget, fmt.Sprintf("%s; %d of %d pods may be unavailable at a time", rest, v.limit(), v.size()))
	}
}

// evict replaces the pods that do not have the template, for a change that is not possible in place.
func (v *view) evict(observed Observation) {
	var left []*pod
	for _, p := range v.pods {
		if !p.labelled && !p.excluded {
			left = append(left, p)
		}
	}
	if !v.policy.Spec.Paused && len(left) > 0 {
		v.take(observed, left, ActionEvict, &latePulls{})
	}
}

// allowed returns how many more pods may get the template, and why not more.
func (v *view) allowed() (n int, reason, message string) {
	if v.deleting() || v.goesBack() { // the update is completed first
		return math.MaxInt, "", ""
	}
	have, unseen := 0, 0
	for _, p := range v.pods {
		if p.stage != outdated {
			have++
		}
		if p.unseen {
			unseen++
		}
	}
	if steps := v.policy.Spec.Steps; len(steps) > 0 {
		i, until := v.step()
		if i == len(steps) {
			return math.MaxInt, "", ""
		}
		message = fmt.Sprintf("step %d of %d: %s with the new template", i+1, len(steps), wording.Count(v.goal(i), "pod", "pods"))
		if v.decision.Status.StepTime != nil {
			message += until
		}
		return max(0, v.goal(i)-have+unseen), v1alpha1.ReasonStep, message
	}
	if kept := v.partition(); kept > 0 {
		left := min(kept, len(v.pods)-have) // the partition can be written when pods have the template
		return max(0, len(v.pods)-kept-have), v1alpha1.ReasonPartition, "spec.partition leaves " + wording.Count(left, "pod as it is", "pods as they are")
	}
	return math.MaxInt, "", ""
}

// step returns the current step, counted from 0, or the number of steps after the last one. paused says until when it pauses.
func (v *view) step() (index int, paused string) {
	status, steps := &v.decision.Status, v.policy.Spec.Steps
	for i := int(ptr.Deref(status.Step, 0)); ; i++ {
		if i >= len(steps) {
			status.Step, status.StepTime = new(int32(len(steps))), nil //nolint:gosec // at most 16
			return len(steps), ""
		}
		if status.Step == nil || int(*status.Step) != i {
			status.Step, status.StepTime = new(int32(i)), nil //nolint:gosec // at most 16
		}
		if v.finished() < v.goal(i) {
			return i, ""
		}
		if status.StepTime == nil {
			status.StepTime = &metav1.Time{Time: v.now}
		}
		if until, passed := v.pause(i, status.StepTime.Time); !passed {
			return i, until
		}
	}
}

// pause reports whether the pause after a step has passed, or until when it lasts.
func (v *view) pause(i int, since time.Time) (until string, passed bool) {
	pause, promoted := v.policy.Spec.Steps[i].Pause, v.policy.Spec.Promoted
	switch {
	case pause == nil, promoted != nil && promoted.Revision == v.workload.Revision && int(promoted.Step) >= i:
		return "", true
	case pause.Seconds == nil:
		return "; waiting until spec.promoted names it", false
	}
	end := since.Add(time.Duration(*pause.Seconds) * time.Second)
	if !v.now.Before(end) {
		return "", true
	}
	v.again(end)
	return "; pause until " + end.UTC().Format(time.RFC3339), false
}

// goal returns how many pods are to have the template at the end of a step: at least one, also while no pod exists.
func (v *view) goal(i int) int {
	return max(1, min(budget.Scaled(&v.policy.Spec.Steps[i].Pods, v.size(), true, len(v.pods)), len(v.pods)))
}

// finished returns the number of pods that have the template and are available.
func (v *view) finished() (n int) {
	for _, p := range v.pods {
		if p.done() {
			n++
		}
	}
	return n
}

// partition returns how many pods are left as they are.
func (v *view) partition() int { return budget.Scaled(v.policy.Spec.Partition, v.size(), true, 0) }

// limit returns how many pods may be unavailable.
func (v *view) limit() int {
	return max(1, budget.Scaled(v.policy.Spec.MaxUnavailable, v.size(), false, 1))
}

// size returns the desired number of pods, or the present number if that is not known.
func (v *view) size() int { return cmp.Or(int(v.workload.Replicas), len(v.pods)) }

func (v *view) budgets() []budget.Pod {
	pods := make([]budget.Pod, len(v.pods))
	for i, p := range v.pods {
		pods[i] = p.budget
	}
	return pods
}

// counted returns the pods that count for maxUnavailable. A node that is down does not stop the update of a DaemonSet, as with its own
// controller.
func (v *view) counted() []budget.Pod {
	pods := make([]budget.Pod, 0, len(v.pods))
	for _, p := range v.pods {
		if v.workload.Kind != "DaemonSet" || !p.unseen || !p.budget.Stuck {
			pods = append(pods, p.budget)
		}
	}
	return pods
}

// disruptions returns what PodDisruptionBudgets still allow, or nil if they are ignored.
func (v *view) disruptions(observed Observation) *budget.Disruptions {
	if v.policy.Spec.PodDisruptionBudgetPolicy == v1alpha1.PodDisruptionBudgetIgnore {
		return nil
	}
	beside := budget.Beside{Budgets: observed.Budgets, Pods: slices.Concat(v.ending, observed.Others), Requests: v.requests, Begun: observed.Begun}
	return beside.Disruptions(v.budgets(), v.now)
}
