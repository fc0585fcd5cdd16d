package rollout

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout/budget"
)

// reportPatience is how long after its creation a rollout waits for kubelet to report the containers of pods that
// existed before. Kubelet reports delayed changes within 10 s.
const reportPatience = 30 * time.Second

// old reports whether the rollout applies to the pod: it existed before the rollout, and its containers had been started.
func (v *view) old(p *pod) bool {
	return v.existed(p) && slices.ContainsFunc(v.rollout.Spec.Containers, func(container v1alpha1.RolloutContainer) bool {
		status := kubelet.StatusOf(p.Pod, container.Name)
		return !hasContainer(p.Pod, container.Name) || status != nil && status.ContainerID != ""
	})
}

func (v *view) existed(p *pod) bool {
	return !p.CreationTimestamp.After(v.rollout.CreationTimestamp.Time)
}

// mayBeOld reports whether the containers of a pod that is not old may have been started without kubelet having
// reported it yet.
func (v *view) mayBeOld(p *pod) bool {
	until := v.rollout.CreationTimestamp.Add(reportPatience)
	if !v.existed(p) || p.Spec.NodeName == "" || p.budget.Stuck || !v.now.Before(until) {
		return false
	}
	v.again(until)
	return true
}

// count sets the counts of the status. lost are the failures of pods that have ended or have been deleted.
func (v *view) count(lost []v1alpha1.PodFailure) {
	status := &v.decision.Status
	before := status.RestartedPods
	status.MatchedPods, status.RestartedPods, status.RestartingPods = 0, 0, 0
	status.FailedPods = int32(min(len(lost), math.MaxInt32))
	var refusals, failures []v1alpha1.PodFailure
	for _, p := range v.pods {
		status.MatchedPods++
		if p.stage == restarting || p.stopping {
			status.RestartingPods++
		}
		if p.stage == restarted || p.replaced {
			status.RestartedPods++
		}
		switch {
		case p.stage != failed:
			continue
		case p.failure.Reason == ReasonRefused:
			refusals = append(refusals, p.failure)
		default:
			failures = append(failures, p.failure)
		}
		status.FailedPods++
	}
	// Put refusals first, because they are only recorded in the status.
	status.Failures = listed(refusals, failures, lost)
	unavailable := budget.New(0, v.budgets(), v.missing(), 0, nil).Unavailable()
	status.UnavailablePods = int32(max(0, min(unavailable, math.MaxInt32)))
	if status.RestartedPods > before || status.LastProgressTime == nil {
		status.LastProgressTime = &metav1.Time{Time: v.now}
	}
}

// budgets returns the pods of the target as budgets see them.
func (v *view) budgets() []budget.Pod {
	pods := make([]budget.Pod, len(v.all))
	for i, p := range v.all {
		pods[i] = p.budget
	}
	return pods
}
