package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// identity identifies an object. An owner reference names an object of the same namespace, so a UID that was copied into
// another namespace refers to nothing there.
type identity struct {
	namespace string
	uid       types.UID
}

// tree moves the requests of each RestartRollout below its line, and keeps the order otherwise. A request whose rollout has
// no line stays at the top level.
func tree(lines []Line) []Line {
	rollouts := map[identity]bool{}
	for _, line := range lines {
		if rollout, ok := line.Object.(*v1alpha1.RestartRollout); ok {
			rollouts[identity{rollout.Namespace, rollout.UID}] = true
		}
	}
	requests := map[identity][]Line{}
	var roots []Line
	for _, line := range lines {
		if maker, found := maker(line); found && rollouts[maker] {
			requests[maker] = append(requests[maker], line)
		} else {
			roots = append(roots, line)
		}
	}
	all := make([]Line, 0, len(lines))
	for _, line := range roots {
		all = append(all, line)
		if rollout, ok := line.Object.(*v1alpha1.RestartRollout); ok {
			all = append(all, branches(requests[identity{rollout.Namespace, rollout.UID}])...)
		}
	}
	return all
}

// maker returns the controller of a request. Other objects, such as a rollout with the owner reference of another one, are
// not moved: only requests are put below something.
func maker(line Line) (identity, bool) {
	request, ok := line.Object.(*v1beta1.ContainerRecreateRequest)
	if !ok {
		return identity{}, false
	}
	controller := metav1.GetControllerOf(request)
	if controller == nil {
		return identity{}, false
	}
	return identity{request.Namespace, controller.UID}, true
}

// branches returns lines with the branches of a tree before their names.
func branches(lines []Line) []Line {
	for i := range lines {
		branch := "├─"
		if i == len(lines)-1 {
			branch = "└─"
		}
		lines[i].Name = branch + lines[i].Name
	}
	return lines
}
