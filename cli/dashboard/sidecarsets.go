package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/wording"
	sidecarsetcli "github.com/refit-project/refit/sidecarset/cli"
)

// sidecarSets is the page of all SidecarSets.
func (s *server) sidecarSets() page {
	return page{name: "sidecarsets", kinds: []kind{sidecarSetKind()}, view: func(_ context.Context, c []*collection) (*View, error) {
		view := &View{Head: Head{Title: "SidecarSets"}}
		sets, err := objects[*v1beta1.SidecarSet](c[0])
		if err != nil {
			view.Head.Notes = append(view.Head.Notes, "SidecarSets cannot be read: "+err.Error())
		}
		slices.SortFunc(sets, func(a, b *v1beta1.SidecarSet) int { return strings.Compare(a.Name, b.Name) })
		view.Head.Summary = "There are " + wording.Count(len(sets), "SidecarSet", "SidecarSets") + "."
		if len(sets) == 1 {
			view.Head.Summary = "There is 1 SidecarSet."
		} else if len(sets) == 0 && err != nil {
			view.Head.Summary = "It is not known which SidecarSets there are."
		}
		table := Section{ID: "sidecarsets", Title: "Rollouts of SidecarSets", Empty: orUnread("There are no SidecarSets.", c[0]), Columns: []string{"Name", "Pods", "Updated", "Ready", "Updating", "Failed", "State", "Detail"}}
		for _, set := range sets {
			state, detail := sidecarsetcli.State(set)
			of := &set.Status
			table.Rows = append(table.Rows, Row{Key: set.Name, Cells: []Cell{
				{Text: set.Name, Href: link(kindSidecarSet+"/"+set.Name, "")}, number(of.MatchedPods), number(of.UpdatedPods), number(of.ReadyPods), number(of.UpdatingPods),
				number(of.FailedPods), {Text: state, Mark: setMark(state)}, text(detail),
			}})
		}
		view.Sections = []Section{table}
		return view, nil
	}}
}

func setMark(state string) Mark {
	switch {
	case state == sidecarSetDone:
		return MarkGood
	case strings.Contains(state, "Degraded"):
		return MarkBad
	}
	return MarkBusy
}

// sidecarSet is the page of one SidecarSet, with its pods and revisions.
func (s *server) sidecarSet(ctx context.Context, of reference) (page, error) {
	of.kind, of.namespace = kindSidecarSet, ""
	var set v1beta1.SidecarSet
	if err := s.API.Get(ctx, of.key(), &set); err != nil {
		return page{}, err
	}
	selector, err := foreign.Selector(set.Spec.Selector)
	if err != nil {
		return page{}, fmt.Errorf("selector of %s: %w", of, err)
	}
	kinds := []kind{named(of, &v1beta1.SidecarSet{}, func() client.ObjectList { return &v1beta1.SidecarSetList{} }), podKind(s.Namespace, selector)}
	const pause = 2 * time.Second // it lists revisions, and compares all pods
	return page{name: "sidecarset", kinds: kinds, pause: pause, view: func(ctx context.Context, c []*collection) (*View, error) {
		set, err := one[*v1beta1.SidecarSet](c[0], of)
		if err != nil {
			return nil, err
		}
		state, detail := sidecarsetcli.State(set)
		now := &set.Status
		view := &View{Head: Head{Title: of.String(), Actions: s.actions(of, pauseOr(set.Spec.UpdateStrategy.Paused), "undo")}}
		view.Head.Summary = strings.TrimSuffix(fmt.Sprintf("%d of %s updated. %s: %s", now.UpdatedPods, wording.Count(int(now.MatchedPods), "pod is", "pods are"), state, detail), ": ")
		view.Head.Facts = []Fact{{"State", state}, {"Pods", number(now.MatchedPods).Text}, {"Updated", number(now.UpdatedPods).Text}, {"Ready", number(now.ReadyPods).Text}, {"Failed", number(now.FailedPods).Text}}
		read, err := sidecarsetcli.Config{API: s.API, System: s.System, Now: s.Now}.Read(ctx, set)
		revisions := s.revisions(&view.Head, read, err)
		view.Sections = []Section{s.sidecarPods(&view.Head, read, c[1]), revisions}
		return view, nil
	}}, nil
}

// revisions returns the table of the revisions of a SidecarSet. err is why they cannot be read.
func (s *server) revisions(head *Head, set *sidecarsetcli.Set, err error) Section {
	table := Section{ID: "revisions", Title: "Revisions", Empty: "There are no revisions in namespace " + s.System + ".", Columns: []string{"Revision", "Name", "Present", "Images", "Custom version", "Created"}}
	var revisions []sidecarsetcli.Revision
	if err == nil {
		revisions, err = set.Revisions()
	}
	if err != nil {
		head.Notes, table.Empty = append(head.Notes, "Revisions cannot be read: "+err.Error()), unread
	}
	for _, r := range slices.Backward(revisions) {
		present := ""
		if r.Present {
			present = "yes"
		}
		table.Rows = append(table.Rows, Row{Key: r.Name, Cells: []Cell{text(fmt.Sprint(r.Number)), text(r.Name), text(present), text(r.Images), text(r.CustomVersion), text(clock(r.Created))}})
	}
	return table
}

// sidecarPods returns the table of the pods of a SidecarSet, first those with a problem.
func (s *server) sidecarPods(head *Head, set *sidecarsetcli.Set, of *collection) Section {
	table := Section{ID: "pods", Title: "Pods", Empty: orUnread("No pod has its sidecars.", of), Columns: []string{"Namespace", "Pod", "Node", "Revision", "State", "Ready", "Detail"}}
	if s.Namespace != "" {
		table.Title = "Pods in namespace " + s.Namespace
	}
	pods, err := objects[*corev1.Pod](of)
	if err != nil {
		head.Notes = append(head.Notes, "Pods cannot be read: "+err.Error())
	}
	states := set.Pods(pods, s.Now())
	if more := len(states) - maxRows; more > 0 {
		states = states[:maxRows]
		head.Notes = append(head.Notes, fmt.Sprintf("Pods: %d more are not shown.", more))
	}
	for _, one := range states {
		ready := "no"
		if kubelet.Ready(one.Pod) {
			ready = "yes"
		}
		table.Rows = append(table.Rows, Row{Key: rowKey(one.Pod), Cells: []Cell{
			text(one.Pod.Namespace), {Text: one.Pod.Name, Href: link("pod/"+one.Pod.Name, one.Pod.Namespace)}, text(one.Pod.Spec.NodeName), text(one.Revision),
			{Text: one.State, Mark: podMark(one.State)}, text(ready), text(one.Why),
		}})
	}
	return table
}
