// Package cli prints SidecarSets and the progress of their rollouts, pauses rollouts, rolls a SidecarSet back to an
// earlier revision, and prints what would be injected into a pod.
package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/table"
)

// Config says where SidecarSets are read.
type Config struct {
	API client.Client
	// System is the namespace of refit-manager, which contains the revisions of SidecarSets.
	System string
	Now    func() time.Time
}

// Conditions of a SidecarSet that are shown.
const (
	progressing = "Progressing"
	degraded    = "Degraded"
)

var columns = []table.Column{
	{Name: "NAME"}, {Name: "PODS"}, {Name: "UPDATED"}, {Name: "READY"}, {Name: "UPDATING"}, {Name: "FAILED"}, {Name: "STATE"}, {Name: "AGE"},
	{Name: "REVISION", Wide: true}, {Name: "NOT INJECTED", Wide: true}, {Name: "NOT UPGRADABLE", Wide: true}, {Name: "IMAGES", Wide: true}, {Name: "DETAIL", Wide: true},
}

// Status prints the SidecarSets with these names, or all.
func (c Config) Status(ctx context.Context, options table.Options, out io.Writer, names ...string) error {
	shown := table.Table{Columns: columns, Nothing: "there are no SidecarSets"}
	var list v1beta1.SidecarSetList
	if len(names) == 0 {
		if err := c.API.List(ctx, &list); err != nil {
			return err
		}
	}
	for _, name := range names {
		var set v1beta1.SidecarSet
		if err := c.API.Get(ctx, client.ObjectKey{Name: name}, &set); err != nil {
			return err
		}
		list.Items = append(list.Items, set)
	}
	for i := range list.Items {
		set := &list.Items[i]
		shown.Rows = append(shown.Rows, table.Row{Object: set, Cells: c.cells(set)})
	}
	return table.Print(out, options, c.API.Scheme(), shown)
}

func (c Config) cells(set *v1beta1.SidecarSet) []any {
	status := &set.Status
	state, detail := State(set)
	return []any{
		set.Name, status.MatchedPods, status.UpdatedPods, status.ReadyPods, status.UpdatingPods, status.FailedPods, state,
		duration.HumanDuration(c.Now().Sub(set.CreationTimestamp.Time)), status.LatestRevision, status.NotInjectedPods, status.NotUpgradablePods,
		imagesOf(&set.Spec), detail,
	}
}

// State returns the state of the rollout of a SidecarSet as one word, and details.
func State(set *v1beta1.SidecarSet) (state, detail string) {
	if set.Status.ObservedGeneration != set.Generation {
		return "Waiting", "refit-manager has not seen the last change"
	}
	condition := meta.FindStatusCondition(set.Status.Conditions, progressing)
	if condition != nil {
		state, detail = condition.Reason, condition.Message
	}
	if set.Spec.UpdateStrategy.Paused {
		state = "Paused"
	}
	if bad := meta.FindStatusCondition(set.Status.Conditions, degraded); bad != nil && bad.Status == metav1.ConditionTrue {
		state, detail = strings.TrimPrefix(state+",Degraded", ","), fmt.Sprintf("%s: %s", bad.Reason, bad.Message)
	}
	if state == "" { // kruise-manager has no conditions
		state = "Updating"
		if set.Status.UpdatedPods == set.Status.MatchedPods {
			state = completed
		}
	}
	return state, detail
}
