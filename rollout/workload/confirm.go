package workload

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// Takes reports whether a decision makes pods unavailable. It must not be carried out if the pods, PodDisruptionBudgets or
// requests were read from a cache that may be behind, because the pods that have become unavailable meanwhile would not count.
func (d *Decision) Takes() bool {
	return slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Kind == ActionUpdate || a.Kind == ActionEvict })
}

// Continues returns the pods whose update has begun and has not ended. The decision may be nil.
func (d *Decision) Continues() map[types.UID]bool {
	pods := map[types.UID]bool{}
	if d == nil {
		return pods
	}
	for _, a := range d.Actions {
		if a.Kind == ActionContinue || a.Kind == ActionWithdraw {
			pods[a.Pod.UID] = true
		}
	}
	return pods
}

// Concludes reports whether a decision depends on all pods, compared with the status before it: a write to the workload, an
// eviction, the begin or end of pulls of images, the end of an update or of a step, or the first failure. Such a decision is
// rare, and is made only with pods that were read from the API server. The label refit.dev/hold-uid does not depend on pods.
func (d *Decision) Concludes(before *v1alpha1.InPlaceUpdatePolicyStatus) bool {
	after := &d.Status
	return before.Update != nil && after.Update == nil || before.StepTime == nil && after.StepTime != nil ||
		before.FailedPods == 0 && after.FailedPods > 0 || before.CurrentRevision != after.CurrentRevision || pulledNow(before.Update, after.Update) ||
		slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Pod == nil && a.Kind != ActionHoldLabel || a.Kind == ActionEvict })
}

// pulledNow reports whether an update has just stopped waiting for images.
func pulledNow(before, after *v1alpha1.TemplateUpdate) bool {
	return after != nil && after.PulledRevision != "" && (before == nil || before.PulledRevision != after.PulledRevision)
}

// Limit keeps at most n updates and evictions of a decision, so that others can be handled between them. It reports whether there
// were more.
func (d *Decision) Limit(n int) (more bool) {
	d.Actions = slices.DeleteFunc(d.Actions, func(a Action) bool {
		if a.Kind != ActionUpdate && a.Kind != ActionEvict {
			return false
		}
		n--
		more = more || n < 0
		return n < 0
	})
	return more
}
