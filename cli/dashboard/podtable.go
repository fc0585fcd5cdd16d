package dashboard

import (
	"strconv"
	"strings"

	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout/cli/policy"
)

// podTable returns the table of the pods of a rollout, which come from watches.
func podTable(states []policy.PodState, of *collection) Section {
	table := Section{ID: "pods", Title: "Pods", Empty: orUnread("It has no pods.", of), Columns: []string{"Pod", "Node", "State", "Ready", "Restarts", "Detail"}}
	for _, one := range states {
		ready, restarts := "no", int32(0)
		if kubelet.Ready(one.Pod) {
			ready = "yes"
		}
		for i := range one.Pod.Status.ContainerStatuses {
			restarts += one.Pod.Status.ContainerStatuses[i].RestartCount
		}
		table.Rows = append(table.Rows, Row{Key: rowKey(one.Pod), Cells: []Cell{
			{Text: one.Pod.Name, Href: link("pod/"+one.Pod.Name, one.Pod.Namespace)}, text(one.Pod.Spec.NodeName), {Text: one.State, Mark: podMark(one.State)},
			text(ready), text(strconv.Itoa(int(restarts))), text(one.Why),
		}})
	}
	return table
}

func podMark(state string) Mark {
	lower := strings.ToLower(state)
	switch {
	case lower == "updated" || lower == "succeeded":
		return MarkGood
	case strings.HasPrefix(lower, "failed"), strings.HasPrefix(lower, "blocked"), lower == "not in place":
		return MarkBad
	case lower == "waiting" || lower == "outdated" || lower == "next" || lower == "left as it is" || lower == "not restarted" || lower == "not known":
		return ""
	}
	return MarkBusy
}
