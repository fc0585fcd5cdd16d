package rollout

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// lost returns the failures of restarts whose pods have ended or have been deleted since: a failed restart may end its pod, and
// users delete pods to have them replaced. The end of a pod during its restart is not a failure of the restart.
func (v *view) lost(requests []*v1beta1.ContainerRecreateRequest) []v1alpha1.PodFailure {
	present := make(map[string]bool, len(v.pods))
	for _, p := range v.pods {
		if p.request != nil {
			present[p.request.Name] = true
		}
	}
	var failures []v1alpha1.PodFailure
	for _, request := range requests {
		if present[request.Name] || !metav1.IsControlledBy(request, v.rollout) || !crr.Completed(request) {
			continue
		}
		if meta.FindStatusCondition(request.Status.Conditions, v1beta1.ConditionSucceeded) == nil { // does not say whether the pod has gone
			continue
		}
		if outcome := crr.OutcomeOf(request); outcome.Reason != "" && outcome.Reason != crr.ReasonPodGone {
			failures = append(failures, v1alpha1.PodFailure{Pod: request.Spec.PodName, Reason: outcome.Reason, Message: outcome.Message})
		}
	}
	slices.SortFunc(failures, func(a, b v1alpha1.PodFailure) int {
		return cmp.Or(strings.Compare(a.Pod, b.Pod), strings.Compare(a.Message, b.Message))
	})
	return failures
}
