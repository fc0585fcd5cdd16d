package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/refit-project/refit/internal/console"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
	"github.com/refit-project/refit/rollout/cli/policy"
	sidecarsetcli "github.com/refit-project/refit/sidecarset/cli"
)

// actions are the commands of kubectl refit rollout that can be run from a page, with what they do.
var actions = map[string]struct {
	name, effect string
	kinds        []string
}{
	"pause":   {"Pause", "No further pod begins. Pods that have begun are completed.", []string{kindRestart, kindPolicy, kindSidecarSet}},
	"resume":  {"Resume", "The rollout continues.", []string{kindRestart, kindPolicy, kindSidecarSet}},
	"abort":   {"Abort", "No further pod begins, and the rollout fails when the pods that have begun are completed. It cannot be continued.", []string{kindRestart}},
	"promote": {"Promote", "The pause of the present step ends.", []string{kindPolicy}},
	"undo":    {"Undo", "The last revision with another content is written, and the pods are updated to it in place.", []string{kindPolicy, kindSidecarSet}},
}

// actions returns links to the confirmations of actions; none in a dashboard that only reads.
func (s *server) actions(of reference, names ...string) []Link {
	if s.ReadOnly {
		return nil
	}
	links := make([]Link, 0, len(names))
	for _, name := range names {
		links = append(links, Link{Text: actions[name].name, Href: "act" + of.query("do", name)})
	}
	return links
}

// asked returns the action and the object of a query or a form.
func (s *server) asked(r *http.Request) (what string, of reference, err error) {
	if err := r.ParseForm(); err != nil {
		return "", of, fmt.Errorf("%w: read the form: %w", console.ErrUsage, err)
	}
	values := r.URL.Query()
	if r.Method == http.MethodPost {
		values = r.PostForm
	}
	if of, err = s.reference(values); err != nil {
		return "", of, err
	}
	what = values.Get("do")
	if !slices.Contains(actions[what].kinds, of.kind) || of.name == "" {
		return "", of, fmt.Errorf("%w: there is no such action", console.ErrUsage)
	}
	return what, of, nil
}

// confirm asks before an action.
func (s *server) confirm(w http.ResponseWriter, r *http.Request) {
	what, of, err := s.asked(r)
	if err != nil || s.ReadOnly {
		if err == nil {
			err = errNoPage
		}
		s.fail(w, err)
		return
	}
	action := actions[what]
	s.write(w, http.StatusOK, document{
		View: &View{Head: Head{Title: action.name + " " + of.String() + "?", Summary: action.effect}},
		Form: &form{Do: what, Kind: of.kind, Namespace: of.namespace, Name: of.name, Button: action.name, Back: link(of.String(), of.namespace)},
	})
}

var errReadOnly = errors.New("the dashboard only reads")

// act runs an action, and shows what it has printed.
func (s *server) act(w http.ResponseWriter, r *http.Request) {
	what, of, err := s.asked(r)
	if err == nil && s.ReadOnly { // guard refuses it before
		err = errReadOnly
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	var out bytes.Buffer
	view := &View{Head: Head{Title: actions[what].name + " " + of.String(), Links: []Link{{Text: "Back to " + of.String(), Href: link(of.String(), of.namespace)}}}}
	code := http.StatusOK
	if err := s.run(r.Context(), what, of, &out); err != nil {
		code, view.Head.Summary = http.StatusUnprocessableEntity, "It failed: "+console.Message(err)
	} else {
		view.Head.Summary = "It is done."
	}
	s.write(w, code, document{View: view, Output: out.String()})
}

// run runs the function of the command kubectl refit rollout with the same name.
func (s *server) run(ctx context.Context, what string, of reference, out *bytes.Buffer) error {
	output := console.NewOutput(out, false)
	switch of.kind {
	case kindRestart:
		config := rolloutcli.Config{API: s.API, Namespace: of.namespace, Output: output}
		if what == "abort" {
			return rolloutcli.Abort(ctx, config, of.name)
		}
		return rolloutcli.Pause(ctx, config, of.name, what == "pause")
	case kindPolicy:
		config, target := policy.Config{API: s.API, Namespace: of.namespace, Output: output}, policy.Target{Name: of.name}
		switch what {
		case "promote":
			return policy.Promote(ctx, config, target, false)
		case "undo":
			return policy.Undo(ctx, policy.UndoConfig{SetConfig: policy.SetConfig{Config: config}}, target)
		}
		return policy.Pause(ctx, config, target, what == "pause")
	}
	config := sidecarsetcli.Config{API: s.API, System: s.System, Now: s.Now}
	if what == "undo" {
		return config.Undo(ctx, out, of.name, 0)
	}
	return config.Pause(ctx, out, of.name, what == "pause")
}
