package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/wording"
)

// daemonPods selects the pods of refit-daemon.
var daemonPods = labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "refit-daemon"})

// nodes is the page of the nodes: whether refit-daemon is ready, what is pulled, and whether probes fail or are late.
func (s *server) nodes() page {
	images := kind{key: "nodeimages", object: &v1beta1.NodeImage{}, list: func() client.ObjectList { return &v1beta1.NodeImageList{} }}
	probes := kind{key: "nodepodprobes", object: &v1beta1.NodePodProbe{}, list: func() client.ObjectList { return &v1beta1.NodePodProbeList{} }}
	return page{name: "nodes", kinds: []kind{podKind(s.System, daemonPods), images, probes}, view: s.nodesView}
}

// node is what is known about a node.
type node struct {
	daemon *corev1.Pod
	images *v1beta1.NodeImage
	probes *v1beta1.NodePodProbe
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
	late := addProbes(&view.Head, all, of[2])
	view.Head.Summary = fmt.Sprintf("refit-daemon is ready on %d of %s; %s in progress.", ready, wording.Count(len(all), "node", "nodes"), wording.Count(pulling, "pull", "pulls"))
	known := of[0].problem() == nil
	if !known {
		view.Head.Summary = "It is not known on which nodes refit-daemon is ready."
	}
	if late > 0 {
		view.Head.Summary += " Probes are late on " + wording.Count(late, "node", "nodes") + "."
	}
	table := Section{ID: "nodes", Title: "Daemons and pulls", Empty: orUnread("There is no refit-daemon in namespace "+s.System+".", of...), Columns: []string{"Node", "Daemon", "Pulling", "Waiting", "Pulled", "Failed", "Images", "Probes"}}
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
		return []Cell{daemon, {}, {}, {}, {}, {}, n.probed()}
	}
	status := &n.images.Status
	return []Cell{
		daemon, number(status.Pulling), number(status.Waiting), number(status.Succeeded), number(status.Failed), text(strings.Join(unfinished(status), "; ")), n.probed(),
	}
}

// addProbes adds the probes of the nodes, and returns on how many nodes they are late.
func addProbes(head *Head, all map[string]node, from *collection) (late int) {
	probes, err := objects[*v1beta1.NodePodProbe](from)
	if err != nil {
		head.Notes = append(head.Notes, "NodePodProbes cannot be read: "+err.Error())
	}
	for _, one := range probes {
		of := all[one.Name]
		of.probes = one
		all[one.Name] = of
		late += btoi(meta.IsStatusConditionTrue(one.Status.Conditions, v1beta1.ConditionProbesDelayed))
	}
	return late
}

// probed returns how many probes a node has, how many of them fail, and whether they are late.
func (n node) probed() Cell {
	if n.probes == nil {
		return Cell{}
	}
	all, failed := 0, 0
	for _, pod := range n.probes.Spec.PodProbes {
		all += len(pod.Probes)
	}
	for _, pod := range n.probes.Status.PodProbeStatuses {
		for _, state := range pod.ProbeStates {
			failed += btoi(state.State == v1beta1.ProbeFailed)
		}
	}
	cell := text(wording.Count(all, "probe", "probes"))
	if failed > 0 {
		cell.Text += fmt.Sprintf(", %d failed", failed)
	}
	if c := meta.FindStatusCondition(n.probes.Status.Conditions, v1beta1.ConditionProbesDelayed); c != nil && c.Status == metav1.ConditionTrue {
		cell.Text, cell.Mark = cell.Text+"; late: "+c.Message, MarkBad
	}
	return cell
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
