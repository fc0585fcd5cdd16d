package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/internal/wording"
	sidecarsetcli "github.com/refit-project/refit/sidecarset/cli"
)

// recent is how long ago what is shown may have ended.
const recent = time.Hour

// maxRows bounds the rows of a table that is not the one of a rollout.
const maxRows = 500

// of returns a kind in the namespaces of the dashboard.
func (s *server) of(key string, object client.Object, list func() client.ObjectList) kind {
	return kind{key: key, object: object, list: list, options: []client.ListOption{client.InNamespace(s.Namespace)}}
}

func (s *server) requestKind() kind {
	return s.of("requests", &v1beta1.ContainerRecreateRequest{}, func() client.ObjectList { return &v1beta1.ContainerRecreateRequestList{} })
}

func (s *server) restartKind() kind {
	return s.of("restarts", &v1alpha1.RestartRollout{}, func() client.ObjectList { return &v1alpha1.RestartRolloutList{} })
}

func (s *server) policyKind() kind {
	return s.of("policies", &v1alpha1.InPlaceUpdatePolicy{}, func() client.ObjectList { return &v1alpha1.InPlaceUpdatePolicyList{} })
}

func sidecarSetKind() kind {
	return kind{key: "sidecarsets", object: &v1beta1.SidecarSet{}, list: func() client.ObjectList { return &v1beta1.SidecarSetList{} }}
}

// now is the page of what is in progress, or has ended in the last hour.
func (s *server) now() page {
	pulls := s.of("pulls", &v1beta1.ImagePullJob{}, func() client.ObjectList { return &v1beta1.ImagePullJobList{} })
	return page{name: "now", kinds: []kind{s.restartKind(), s.policyKind(), sidecarSetKind(), s.requestKind(), pulls}, view: s.nowView}
}

func (s *server) nowView(_ context.Context, of []*collection) (*View, error) {
	view := &View{Head: Head{Title: "Now in all namespaces"}}
	if s.Namespace != "" {
		view.Head.Title = "Now in namespace " + s.Namespace
	}
	restarts, policies := lines[*v1alpha1.RestartRollout](view, of[0], "RestartRollouts"), lines[*v1alpha1.InPlaceUpdatePolicy](view, of[1], "InPlaceUpdatePolicies")
	requests, pulls := lines[*v1beta1.ContainerRecreateRequest](view, of[3], "ContainerRecreateRequests"), lines[*v1beta1.ImagePullJob](view, of[4], "ImagePullJobs")
	single := slices.DeleteFunc(requests, func(l status.Line) bool { return metav1.GetControllerOf(l.Object) != nil })
	rollouts := slices.Concat(restarts, policies, sidecarSetLines(view, of[2]))
	view.Sections = []Section{
		s.section(&view.Head, "rollouts", "Rollouts", rollouts, of[:3]...), s.section(&view.Head, "requests", "Requests for one pod", single, of[3]), s.section(&view.Head, "pulls", "Image pulls", pulls, of[4]),
	}
	view.Head.Summary = inProgress(
		counted{underWay(rollouts), "rollout", "rollouts", of[:3]}, counted{underWay(single), "request", "requests", of[3:4]}, counted{underWay(pulls), "image pull", "image pulls", of[4:]})
	return view, nil
}

// counted is how many objects are in progress, and where they were read.
type counted struct {
	n         int
	one, more string
	of        []*collection
}

// inProgress says how much is in progress. None is not known to be in progress of what cannot be read.
func inProgress(all ...counted) string {
	var known, unknown []string
	partly := false
	for _, c := range all {
		missing := 0
		for _, kind := range c.of {
			missing += btoi(kind.problem() != nil)
		}
		if missing == len(c.of) && c.n == 0 {
			unknown = append(unknown, c.more)
			continue
		}
		known, partly = append(known, wording.Count(c.n, c.one, c.more)), partly || missing > 0
	}
	if len(known) == 0 {
		return "It is not known what is in progress."
	}
	text := "In progress: " + strings.Join(known, ", ") + "."
	if partly {
		text += " There may be more, because not everything can be read."
	}
	if len(unknown) > 0 {
		text += " Not known: " + strings.Join(unknown, ", ") + "."
	}
	return text
}

func underWay(lines []status.Line) (n int) {
	for _, line := range lines {
		if line.Ended.IsZero() {
			n++
		}
	}
	return n
}

// lines describes the objects of a kind. Why some are missing becomes a note.
func lines[T client.Object](view *View, of *collection, kinds string) []status.Line {
	all, err := objects[T](of)
	if err != nil {
		view.Head.Notes = append(view.Head.Notes, kinds+" cannot be read: "+err.Error())
	}
	described := make([]status.Line, 0, len(all))
	for _, object := range all {
		described = append(described, status.Describe(object))
	}
	return described
}

// sidecarSetLines describes the SidecarSets whose rollout is in progress.
func sidecarSetLines(view *View, of *collection) (rollouts []status.Line) {
	all, err := objects[*v1beta1.SidecarSet](of)
	if err != nil {
		view.Head.Notes = append(view.Head.Notes, "SidecarSets cannot be read: "+err.Error())
	}
	for _, set := range all {
		state, detail := sidecarsetcli.State(set)
		if state == sidecarSetDone {
			continue
		}
		rollouts = append(rollouts, status.Line{
			Object: set, Name: kindSidecarSet + "/" + set.Name, Target: "pods", State: state, Detail: detail,
			Done: fmt.Sprintf("%d/%d", set.Status.UpdatedPods, set.Status.MatchedPods),
		})
	}
	return rollouts
}

// sidecarSetDone is the state of a SidecarSet without pods to update.
const sidecarSetDone = "Completed"

// section returns a table of what is in progress or has ended in the last hour, the newest first.
func (s *server) section(head *Head, id, title string, shown []status.Line, of ...*collection) Section {
	shown = slices.DeleteFunc(shown, func(l status.Line) bool { return !l.Ended.IsZero() && s.Now().Sub(l.Ended) > recent })
	slices.SortFunc(shown, func(a, b status.Line) int {
		return cmp.Or(cmp.Compare(btoi(!a.Ended.IsZero()), btoi(!b.Ended.IsZero())), b.Object.GetCreationTimestamp().Compare(a.Object.GetCreationTimestamp().Time),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()))
	})
	if more := len(shown) - maxRows; more > 0 {
		shown = shown[:maxRows]
		head.Notes = append(head.Notes, fmt.Sprintf("%s: %d more are not shown.", title, more))
	}
	table := Section{ID: id, Title: title, Empty: orUnread("Nothing in progress, and nothing that ended in the last hour.", of...), Columns: []string{"Name", "Target", "State", "Done", "Requested by", "Created", "Detail"}}
	if s.Namespace == "" {
		table.Columns = append([]string{"Namespace"}, table.Columns...)
	}
	for _, l := range shown {
		namespace := l.Object.GetNamespace()
		cells := []Cell{
			{Text: l.Name, Href: link(l.Name, namespace)}, {Text: l.Target, Href: podLink(l.Target, namespace)}, {Text: l.State, Mark: markOf(l)},
			text(l.Done), text(l.By), text(clock(l.Object.GetCreationTimestamp().Time)), text(l.Detail),
		}
		if s.Namespace == "" {
			cells = append([]Cell{text(namespace)}, cells...)
		}
		table.Rows = append(table.Rows, Row{Key: namespace + "/" + l.Name, Cells: cells})
	}
	return table
}

// podLink returns the page of a target that is a pod.
func podLink(target, namespace string) string {
	if !strings.HasPrefix(target, "pod/") {
		return ""
	}
	return link(target, namespace)
}

func markOf(l status.Line) Mark {
	switch {
	case l.State == "Succeeded":
		return MarkGood
	case !l.Ended.IsZero(), strings.Contains(l.State, "Failed"), strings.Contains(l.State, "Degraded"):
		return MarkBad
	}
	return MarkBusy
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
