package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/logs"
	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/cli/timeline"
	"github.com/refit-project/refit/cli/why"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/wording"
)

// pictures is how many of the last requests of a pod are shown as pictures.
const pictures = 3

// pod is the page of one pod: why its containers were restarted, when the parts of its restarts happened, and its logs.
func (s *server) pod(of reference) page {
	of.kind = "pod"
	kinds := []kind{named(of, &corev1.Pod{}, func() client.ObjectList { return &corev1.PodList{} }), s.requestKind()}
	const pause = 2 * time.Second // it lists requests and Events
	return page{name: "pod", kinds: kinds, pause: pause, view: func(ctx context.Context, c []*collection) (*View, error) {
		pod, err := one[*corev1.Pod](c[0], of)
		if err != nil {
			return nil, err
		}
		containers, err := s.why(ctx, of)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		view := &View{Head: Head{Title: of.String(), Facts: []Fact{{"Namespace", of.namespace}, {"Node", pod.Spec.NodeName}, {"Phase", string(pod.Status.Phase)}}}}
		if err != nil {
			view.Head.Notes = append(view.Head.Notes, "Why its containers were restarted cannot be read: "+err.Error())
			containers = unexplained(pod)
		}
		restarts := 0
		for _, container := range containers {
			restarts += int(container.Restarts)
		}
		view.Head.Summary = fmt.Sprintf("%s, %s.", wording.Count(len(containers), "container", "containers"), wording.Count(restarts, "restart", "restarts"))
		requests, err := objects[*v1beta1.ContainerRecreateRequest](c[1])
		if err != nil {
			view.Head.Notes = append(view.Head.Notes, "ContainerRecreateRequests cannot be read: "+err.Error())
		}
		requests = slices.DeleteFunc(requests, func(r *v1beta1.ContainerRecreateRequest) bool {
			return r.Namespace != of.namespace || r.Spec.PodName != of.name
		})
		slices.SortFunc(requests, func(a, b *v1beta1.ContainerRecreateRequest) int {
			return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		})
		for _, request := range requests[:min(len(requests), pictures)] {
			view.Head.Pictures = append(view.Head.Pictures, Picture{
				Src: "timeline.svg" + reference{"crr", of.namespace, request.Name}.query("version", request.ResourceVersion),
				Alt: "When the instances of the containers ran during the request " + request.Name + ". The table of moments has the same times.",
			})
		}
		view.Sections = []Section{s.whyTable(of, containers), requestTable(requests, c[1]), s.moments(ctx, of, requests, c[1])}
		return view, nil
	}}
}

// why returns why the containers of a pod were restarted last.
func (s *server) why(ctx context.Context, of reference) (containers []why.Container, err error) {
	var out bytes.Buffer
	config := why.Config{API: s.API, Logs: s.Previous, Namespace: of.namespace, Format: "json"}
	if err := why.Run(ctx, config, &out, of.name); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out.Bytes(), &containers); err != nil {
		return nil, fmt.Errorf("read why the containers were restarted: %w", err)
	}
	return containers, nil
}

// unexplained returns the containers of a pod with the state that the pod itself has.
func unexplained(pod *corev1.Pod) []why.Container {
	containers := why.Explain(pod, nil, nil)
	for i := range containers {
		containers[i].Cause, containers[i].Message = why.CauseUnknown, "not known"
	}
	return containers
}

func (s *server) whyTable(of reference, containers []why.Container) Section {
	table := Section{ID: "why", Title: "Why its containers were restarted last", Empty: "It has no container statuses yet.", Columns: []string{"Container", "State", "Restarts", "Cause", "Why", "Probes", "Log"}}
	for _, c := range containers {
		explained := c.Message
		if c.Waiting != "" {
			explained += "; waiting: " + c.Waiting
		}
		mark := MarkGood
		if !c.Ready {
			mark = MarkBusy
		}
		table.Rows = append(table.Rows, Row{Key: c.Name, Cells: []Cell{
			text(c.Name), {Text: c.State, Mark: mark}, text(strconv.Itoa(int(c.Restarts))), text(string(c.Cause)), text(explained), text(strings.Join(c.Probes, "; ")),
			{Text: "Log of " + c.Name + " across restarts", Href: "log" + of.query("container", c.Name)},
		}})
	}
	return table
}

func requestTable(requests []*v1beta1.ContainerRecreateRequest, from *collection) Section {
	table := Section{ID: "requests", Title: "Requests", Empty: orUnread("There are no requests for this pod.", from), Columns: []string{"Request", "State", "Done", "Requested by", "Created", "Detail"}}
	for _, request := range requests {
		l := status.Describe(request)
		table.Rows = append(table.Rows, Row{Key: l.Name, Cells: []Cell{
			text(l.Name), {Text: l.State, Mark: markOf(l)}, text(l.Done), text(l.By), text(clock(request.CreationTimestamp.Time)), text(l.Detail),
		}})
	}
	return table
}

// moments has the times of the pictures.
func (s *server) moments(ctx context.Context, of reference, requests []*v1beta1.ContainerRecreateRequest, from *collection) Section {
	table := Section{ID: "moments", Title: "When the parts of its last restarts happened", Empty: orUnread("There are no requests for this pod.", from), Columns: []string{"Time", "Request", "Container", "What", "Recorded by"}}
	for _, request := range requests[:min(len(requests), pictures)] {
		var out bytes.Buffer
		var all []timeline.Moment
		err := timeline.Run(ctx, timeline.Config{API: s.API, Namespace: of.namespace, Format: "json"}, &out, timeline.Target{Request: request.Name})
		if err == nil {
			err = json.Unmarshal(out.Bytes(), &all)
		}
		if err != nil {
			table.Rows = append(table.Rows, Row{Key: request.Name, Cells: []Cell{text(""), text(request.Name), text(""), text("cannot be read"), text(err.Error())}})
		}
		for _, m := range all {
			at := "not known"
			switch {
			case m.NotYet:
				at = "not yet"
			case m.Time != nil && m.WholeSeconds:
				at = m.Time.Local().Format("15:04:05")
			case m.Time != nil:
				at = m.Time.Local().Format("15:04:05.000")
			}
			table.Rows = append(table.Rows, Row{Key: m.Request + "/" + m.Container + "/" + m.What, Cells: []Cell{text(at), text(m.Request), text(m.Container), text(m.What), text(m.Source)}})
		}
	}
	return table
}

// timeline writes the picture of a request or a RestartRollout.
func (s *server) timeline(w http.ResponseWriter, r *http.Request) {
	of, err := s.reference(r.URL.Query())
	if err != nil {
		s.fail(w, err)
		return
	}
	target, err := timeline.ParseTarget(of.String())
	if err != nil {
		s.fail(w, err)
		return
	}
	var out bytes.Buffer
	if err := timeline.Run(r.Context(), timeline.Config{API: s.API, Namespace: of.namespace, Format: "svg"}, &out, target); err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(out.Bytes())
}

// log writes the log of a container across its restarts as plain text.
func (s *server) log(w http.ResponseWriter, r *http.Request) {
	of, err := s.reference(r.URL.Query())
	if err != nil {
		s.fail(w, err)
		return
	}
	const lines, most = 1000, 4 << 20
	var out bytes.Buffer
	config := logs.Config{API: s.API, Open: s.Logs, Namespace: of.namespace, Container: r.URL.Query().Get("container"), Tail: lines}
	switch err := logs.Run(r.Context(), config, &limited{&out, most}, of.name); {
	case errors.Is(err, errFull):
		fmt.Fprintf(&out, "\nOnly the first %d MiB are shown, and nothing that follows. kubectl refit logs shows all.\n", most>>20)
	case err != nil:
		fmt.Fprintf(&out, "\nThe log cannot be read: %s\n", console.Message(err))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(out.Bytes())
}

var errFull = errors.New("the log is too long")

// limited takes a number of bytes, and then refuses more.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.to.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}
