package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/wording"
	"github.com/refit-project/refit/rollout/budget"
)

// start adds the requests that may be created now, and returns why the remaining pods have to wait.
func (v *view) start(observed Observation) (reason, message string) {
	spec, left := &v.rollout.Spec, v.remaining()
	switch {
	case v.stopReason() != "":
		return v.stopReason(), "no further pod is restarted: waiting for the restarts under way to end"
	case spec.Paused:
		return v1alpha1.ReasonPaused, "spec.paused is set: " + wording.Count(len(left), "pod is left", "pods are left")
	case len(left) == 0 && v.partition() > 0:
		return v1alpha1.ReasonPartition, "spec.partition leaves " + wording.Count(min(v.partition(), len(v.pods)), "pod as it is", "pods as they are")
	case v.stopped():
		return v1alpha1.ReasonRestarting, "a restart has failed: waiting for the restarts under way to end"
	case len(left) == 0 && v.unreported > 0:
		return v1alpha1.ReasonRestarting, "waiting for kubelet to report the containers of " + wording.Count(v.unreported, "pod", "pods")
	}
	free := budget.New(v.limit(), v.budgets(), v.missing(), 0, v.disruptions(observed))
	var heldBy string // what blocks a pod that maxUnavailable allows
	elsewhere, others := 0, []string(nil)
	for _, p := range left {
		if request := v.elsewhere(p); request != nil {
			elsewhere++
			others = append(others, cmp.Or(rolloutOf(request), request.Name))
			continue
		}
		switch hold, by := free.Take(&p.budget); hold {
		case "":
			v.decision.Start = append(v.decision.Start, request(v.rollout, p.Pod))
		case budget.HoldDisruption:
			heldBy = by
		}
	}
	switch started := len(v.decision.Start); {
	case started == len(left):
		return v1alpha1.ReasonRestarting, "every pod that is to be restarted has a ContainerRecreateRequest"
	case started+elsewhere == len(left):
		return v1alpha1.ReasonRestarting, fmt.Sprintf("waiting for other RestartRollouts to end their restarts of %s: %s", wording.Count(elsewhere, "pod", "pods"), strings.Join(firsts(others), ", "))
	case heldBy != "":
		return v1alpha1.ReasonDisruptionBudget, fmt.Sprintf("PodDisruptionBudget %s allows no more disruptions: %s", heldBy, wording.Count(len(left)-started, "pod is left", "pods are left"))
	default:
		return v1alpha1.ReasonBudget, fmt.Sprintf("%s; %d of %d pods may be unavailable at a time%s", wording.Count(len(left)-started, "pod is left", "pods are left"), v.limit(), v.size(), v.named())
	}
}

// remaining returns the pods that still have to be restarted: first pods that cannot become ready by themselves, then
// other pods that do not serve, then pods that are unavailable for another reason.
func (v *view) remaining() []*pod {
	var left []*pod
	for _, p := range v.pods[:max(0, len(v.pods)-v.partition())] {
		if p.stage == waiting {
			left = append(left, p)
		}
	}
	oldest := v.rollout.Annotations[v1alpha1.AnnotationOldestFirst] == "true"
	slices.SortStableFunc(left, func(a, b *pod) int {
		if order := cmp.Compare(a.budget.Rank(), b.budget.Rank()); order != 0 || !oldest {
			return order
		}
		return v.running(a).Compare(v.running(b))
	})
	return left
}

// running returns the earliest start of the rollout's containers that run in the pod, or zero if none runs.
func (v *view) running(p *pod) (since time.Time) {
	for _, container := range v.rollout.Spec.Containers {
		status := kubelet.StatusOf(p.Pod, container.Name)
		if status == nil || status.State.Running == nil {
			continue
		}
		if started := status.State.Running.StartedAt.Time; since.IsZero() || started.Before(since) {
			since = started
		}
	}
	return since
}

// stopped reports whether failures prevent further restarts.
func (v *view) stopped() bool {
	refused := 0
	for _, p := range v.pods {
		if p.stage == failed && p.failure.Reason == ReasonRefused {
			refused++
		}
	}
	return v.decision.Status.FailedPods > 0 && v.rollout.Spec.FailurePolicy != v1alpha1.RolloutFailureContinue || refused >= MaxFailures
}

// limit returns how many pods may be unavailable.
func (v *view) limit() int {
	return max(1, budget.Scaled(v.rollout.Spec.MaxUnavailable, v.size(), false, 1))
}

// partition returns how many pods are left as they are.
func (v *view) partition() int {
	partition := v.rollout.Spec.Partition
	if partition == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(partition, v.size(), true)
	if err != nil {
		return len(v.pods) // cannot happen: the CRD refuses such values
	}
	return max(n, 0)
}

// disruptions returns what the PodDisruptionBudgets of the pods still allow, or nil if they are ignored.
func (v *view) disruptions(observed Observation) *budget.Disruptions {
	if v.rollout.Spec.PodDisruptionBudgetPolicy == v1alpha1.PodDisruptionBudgetIgnore {
		return nil
	}
	beside := budget.Beside{Budgets: observed.Budgets, Pods: slices.Concat(v.ending, observed.Others), Requests: v.requests, Begun: observed.Begun}
	return beside.Disruptions(v.budgets(), v.now)
}
