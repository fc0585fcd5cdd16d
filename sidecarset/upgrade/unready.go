package upgrade

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/rollout/budget"
)

// clockSkew is the maximum assumed difference between the clocks of a node and of the API server.
const clockSkew = time.Minute

// notReadySince returns when the pod became not ready, and false if it is ready, or if kubelet has not reported it yet.
func notReadySince(pod *corev1.Pod) (metav1.Time, bool) {
	condition := kubelet.Condition(&pod.Status, corev1.PodReady)
	if condition == nil || condition.Status == corev1.ConditionTrue {
		return metav1.Time{}, false
	}
	return condition.LastTransitionTime, true
}

// unready returns what the record of an update that begins now stores about a pod that is not ready. If the previous
// update is, or may be, the cause, the record says so, so that a series of faulty specs does not make one more pod
// unavailable each.
func (p *progress) unready() *v1beta1.InPlaceUpdateUnready {
	since, unready := notReadySince(p.pod)
	if !unready {
		return nil
	}
	if p.record != nil {
		was, begun := p.record.Extension().Unready, p.record.State.UpdateTimestamp.Time
		if was != nil && was.Since.Equal(&since) {
			return was
		}
		if since.After(begun.Add(-clockSkew)) && since.Time.Before(p.record.Changed().Add(budget.StuckAfter)) {
			return &v1beta1.InPlaceUpdateUnready{Since: since, Updated: true}
		}
	}
	now, _ := budget.Observe(p.pod, nil, 0, p.now)
	return &v1beta1.InPlaceUpdateUnready{Since: since, Stuck: now.Stuck}
}

// brokenBefore reports whether the pod has not been ready since before the update in the record, and cannot become
// ready by itself: it could not then, or has not for as long as budgets expect it to. Otherwise at is when it will
// count as broken, or zero for never.
func (p *progress) brokenBefore() (_ bool, at recheck.At) {
	since, unready := notReadySince(p.pod)
	if p.record == nil || !unready {
		return false, recheck.At{}
	}
	was := p.record.Extension().Unready
	if was == nil || was.Updated || !was.Since.Equal(&since) {
		return false, recheck.At{}
	}
	if at = recheck.On(since.Add(budget.StuckAfter)); !was.Stuck && !at.Passed(p.now) {
		return false, at
	}
	return true, recheck.At{}
}
