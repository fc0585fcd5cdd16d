package rollout

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/rollout/budget"
)

// mostNamed limits how many objects a message names.
const mostNamed = 3

// firsts returns the first names in their order, and how many more there are.
func firsts(names []string) []string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("%d more", more))
	}
	return names
}

// named returns the names of some unavailable pods, and who else makes them unavailable.
func (v *view) named() string {
	var names []string
	for _, p := range v.all {
		if p.budget.Available {
			continue
		}
		name := p.Name
		if by := v.holder(p); by != "" {
			name += " (" + by + ")"
		}
		names = append(names, name)
	}
	names = firsts(names)
	if missing := v.missing(); missing > 0 {
		names = append(names, fmt.Sprintf("%d missing", missing))
	}
	if len(names) == 0 {
		return ""
	}
	return "; unavailable: " + strings.Join(names, ", ")
}

// holder returns the object of somebody else by which an operation is in progress on the pod, or "".
func (v *view) holder(p *pod) string {
	for _, request := range v.requests[p.Name] {
		if metav1.IsControlledBy(request, v.rollout) || !v.underWay(request, p) {
			continue
		}
		if by := rolloutOf(request); by != "" {
			return v1alpha1.KindRestartRollout + " " + by
		}
		return "ContainerRecreateRequest " + request.Name
	}
	if by := budget.UpdatedBy(p.Pod, v.now); by != "" {
		return "SidecarSet " + by
	}
	return ""
}

// underWay reports whether the request restarts the pod and has not ended, or its stop has not.
func (v *view) underWay(request *v1beta1.ContainerRecreateRequest, p *pod) bool {
	return budget.Restarts(request, p.Pod) && (!crr.Completed(request) && request.DeletionTimestamp == nil || crr.StopUnderWay(request, p.Pod, v.now))
}

// rolloutOf returns the name of the RestartRollout that has created the request, or "".
func rolloutOf(request *v1beta1.ContainerRecreateRequest) string {
	if owner := metav1.GetControllerOfNoCopy(request); owner != nil && owner.Kind == v1alpha1.KindRestartRollout {
		return owner.Name
	}
	return ""
}

// elsewhere returns the request by which another rollout is restarting the pod, or nil. A second request would stop the
// container again as soon as it runs. Requests of rollouts have a deadline, so the wait for them is limited.
func (v *view) elsewhere(p *pod) *v1beta1.ContainerRecreateRequest {
	for _, request := range v.requests[p.Name] {
		if by := request.Labels[v1alpha1.LabelRestartRollout]; by != "" && by != string(v.rollout.UID) && v.underWay(request, p) {
			return request
		}
	}
	return nil
}
