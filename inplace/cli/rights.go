package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/console"
)

// The rights to read which pods are unavailable and what PodDisruptionBudgets allow.
var (
	listPods     = Right{Verb: "list", Resource: "pods"}
	listRequests = Right{Verb: "list", Group: v1beta1.Group, Resource: "containerrecreaterequests"}
	listBudgets  = Right{Verb: "list", Group: "policy", Resource: "poddisruptionbudgets"}
)

// mayDo refuses an update for which the user lacks permissions, because it would stop half-way.
func (u *updater) mayDo(ctx context.Context, update *plan.Update) error {
	needed := []Right{{Verb: "patch", Resource: "pods"}}
	if slices.ContainsFunc(update.Stages, func(s plan.Stage) bool { return s.Kind == plan.StageResize }) {
		needed = append(needed, Right{Verb: "patch", Resource: "pods", Subresource: "resize"})
	}
	stops := len(update.Stops(&u.pod.Spec)) > 0
	if gate.Of(u.pod) != "" && (stops || gate.Shut(u.pod)) {
		needed = append(needed, Right{Verb: "patch", Resource: "pods", Subresource: "status"})
	}
	if slices.ContainsFunc(update.Changes.Containers, func(c plan.Change) bool { return c.ChangesMetadata() && c.Image == "" }) {
		needed = append(needed, restartRight)
	}
	if stops && u.bounded() {
		needed = append(needed, listPods)
		if u.Turn.Requests() {
			needed = append(needed, listRequests)
		}
		if !u.Turn.IgnorePodDisruptionBudgets {
			needed = append(needed, listBudgets)
		}
	}
	var missing []Right
	for _, right := range needed {
		if may, err := u.API.May(ctx, u.pod.Namespace, right); err == nil && !may { // a user who may not ask will be refused later
			missing = append(missing, right)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	texts := make([]string, len(missing))
	for i, right := range missing {
		texts[i] = right.String()
	}
	return fmt.Errorf("%w: in namespace %s you have no permission to %s%s", console.ErrRefused, u.pod.Namespace, strings.Join(texts, ", "), without(missing))
}

const withoutLists = "; with --max-unavailable=100% and --ignore-pod-disruption-budgets nothing is listed, and the update waits for no other pod"

// without returns the flags with which an update needs fewer rights.
func without(missing []Right) string {
	switch {
	case slices.Contains(missing, listRequests):
		return "; the ClusterRole refit-containerrecreaterequest-viewer, a part of view, edit and admin, allows to list the requests" + withoutLists
	case slices.Contains(missing, listPods):
		return withoutLists
	case slices.Contains(missing, listBudgets):
		return "; with --ignore-pod-disruption-budgets they are not asked"
	}
	return ""
}
