package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/wording"
	sidecarsetcli "github.com/refit-project/refit/sidecarset/cli"
)

// daemonPods selects the pods of refit-daemon.
var daemonPods = labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "refit-daemon"})

// nodes is the page of the nodes: whether refit-daemon is ready, and what is pulled.
func (s *server) nodes() page {
	images := kind{key: "nodeimages", object: &v1beta1.NodeImage{}, list: func() client.ObjectList { return &v1beta1.NodeImageList{} }}
	return page{name: "nodes", kinds: []kind{podKind(s.System, daemonPods), images}, view: s.nodesView}
}

// node is what is known about a node.
type node struct {
	daemon *corev1.Pod
	images *v1beta1.NodeImage
}

func (s *server) nodesView(_ context.Context, of []*collection) (*View, error) {
	view := &View{Head: Head{Title: "Nodes"}}
	all := map[string]node{}
	pods, err := objects[*corev1.Pod](of[0])
	if err != nil {
		view.Head.Notes = append(view.Head.Notes, "Pods of refit-daemon cannot be read: "+err.Error())
	}
	for _, pod := range pods {
		other := all[pod.Spec.NodeName].daemon // during an update of refit-daemon
		if pod.Spec.NodeName != "" && (other == nil || !kubelet.Ready(other)) {
			all[pod.Spec.NodeName] = node{daemon: pod}
		}
	}
	ready := 0
	for _, one := range all {
		if kubelet.Ready(one.daemon) {
			ready++
		}
	}
	images, err := objects[*v1beta1.NodeImage](of[1])
	if err != nil {
		view.Head.Notes = append(view.Head.Notes, "NodeImages cannot be read: "+err.Error())
	}
	pulling := 0
	for _, one := range images {
		of := all[one.Name]
		of.images = one
		all[one.Name] = of
		pulling += int(one.Status.Pulling)
	}
	view.Head.Summary = fmt.Sprintf("refit-daemon is ready on %d of %s; %s in progress.", ready, wording.Count(len(all), "node", "nodes"), wording.Count(pulling, "pull", "pulls"))
	known := of[0].problem() == nil
	if !known {
		view.Head.Summary = "It is not known on which nodes refit-daemon is ready."
	}
	table := Section{ID: "nodes", Title: "Daemons and pulls", Empty: orUnread("There is no refit-daemon in namespace "+s.System+".", of...), Columns: []string{"Node", "Daemon", "Pulling", "Waiting", "Pulled", "Failed", "Images"}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		table.Rows = append(table.Rows, Row{Key: name, Cells: append([]Cell{text(name)}, all[name].cells(known)...)})
	}
	view.Sections = []Section{table}
	return view, nil
}

// cells returns the row of a node. known is false if the pods of refit-daemon cannot be read.
func (n node) cells(known bool) []Cell {
	daemon := Cell{Text: "none", Mark: MarkBad}
	switch {
	case n.daemon != nil && kubelet.Ready(n.daemon):
		daemon = Cell{Text: "ready", Mark: MarkGood}
	case !known && n.daemon == nil:
		daemon = text("not known")
	case n.daemon != nil:
		daemon = Cell{Text: "not ready", Mark: MarkBad}
	}
	if n.images == nil {
		return []Cell{daemon, {}, {}, {}, {}, {}}
	}
	status := &n.images.Status
	return []Cell{daemon, number(status.Pulling), number(status.Waiting), number(status.Succeeded), number(status.Failed), text(strings.Join(unfinished(status), "; "))}
}

func number(n int32) Cell { return text(fmt.Sprint(n)) }

// unfinished describes the images that are pulled, and those that could not be.
func unfinished(status *v1beta1.NodeImageStatus) (shown []string) {
	for _, name := range slices.Sorted(maps.Keys(status.ImageStatuses)) {
		for _, tag := range status.ImageStatuses[name].Tags {
			image := name + ":" + tag.Tag
			switch tag.Phase {
			case v1beta1.ImagePhasePulling:
				progress := fmt.Sprintf("%s %d%%", image, tag.Progress)
				if tag.TotalBytes > 0 {
					progress += fmt.Sprintf(" (%.1f of %.1f MB)", megabytes(tag.PulledBytes), megabytes(tag.TotalBytes))
				}
				shown = append(shown, progress)
			case v1beta1.ImagePhaseFailed:
				shown = append(shown, image+" failed: "+tag.Message)
			}
		}
	}
	return shown
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }

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

// sidecarSet is the page of one SidecarSet, with its revisions.
func (s *server) sidecarSet(of reference) page {
	of.kind, of.namespace = kindSidecarSet, ""
	return page{name: "sidecarset", kinds: []kind{named(of, &v1beta1.SidecarSet{}, func() client.ObjectList { return &v1beta1.SidecarSetList{} })}, view: func(ctx context.Context, c []*collection) (*View, error) {
		set, err := one[*v1beta1.SidecarSet](c[0], of)
		if err != nil {
			return nil, err
		}
		state, detail := sidecarsetcli.State(set)
		now := &set.Status
		view := &View{Head: Head{Title: of.String(), Actions: s.actions(of, pauseOr(set.Spec.UpdateStrategy.Paused), "undo")}}
		view.Head.Summary = strings.TrimSuffix(fmt.Sprintf("%d of %s updated. %s: %s", now.UpdatedPods, wording.Count(int(now.MatchedPods), "pod is", "pods are"), state, detail), ": ")
		view.Head.Facts = []Fact{{"State", state}, {"Pods", number(now.MatchedPods).Text}, {"Updated", number(now.UpdatedPods).Text}, {"Ready", number(now.ReadyPods).Text}, {"Failed", number(now.FailedPods).Text}}
		table := Section{ID: "revisions", Title: "Revisions", Empty: "There are no revisions in namespace " + s.System + ".", Columns: []string{"Revision", "Name", "Present", "Images", "Custom version", "Created"}}
		revisions, err := sidecarsetcli.Config{API: s.API, System: s.System, Now: s.Now}.Revisions(ctx, set)
		if err != nil {
			view.Head.Notes, table.Empty = append(view.Head.Notes, "Revisions cannot be read: "+err.Error()), unread
		}
		for _, r := range slices.Backward(revisions) {
			present := ""
			if r.Present {
				present = "yes"
			}
			table.Rows = append(table.Rows, Row{Key: r.Name, Cells: []Cell{text(fmt.Sprint(r.Number)), text(r.Name), text(present), text(r.Images), text(r.CustomVersion), text(clock(r.Created))}})
		}
		view.Sections = []Section{table}
		return view, nil
	}}
}
