package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/refit-project/refit/cli/timeline"
	"github.com/refit-project/refit/internal/console"
)

// maxPicture bounds the pods of a rollout whose timeline is drawn, because several objects are read for each.
const maxPicture = 100

// Record writes a rollout as one file of HTML, which needs nothing else and has no script.
func Record(ctx context.Context, config Config, out io.Writer, target string) error {
	kind, name, ok := console.KindName(target)
	switch {
	case console.IsRestartRollout(kind):
		kind = kindRestart
	case console.IsPolicy(kind):
		kind = kindPolicy
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%w: %q: want restartrollout/NAME or inplaceupdatepolicy/NAME", console.ErrUsage, target)
	}
	config.ReadOnly = true
	s := newServer(config)
	defer s.watches.close()
	of := reference{kind, config.Namespace, name}
	p, err := s.rollout(ctx, of)
	if err != nil {
		return err
	}
	see, release := s.open(ctx, p, make(chan struct{}, 1))
	defer release()
	view, err := see(ctx)
	if err != nil {
		return err
	}
	return s.file(ctx, out, of, view)
}

// file writes a view without links to the dashboard.
func (s *server) file(ctx context.Context, out io.Writer, of reference, view *View) error {
	view.Head.Links = nil
	rows := 0
	for _, section := range view.Sections {
		rows += len(section.Rows)
		for _, row := range section.Rows {
			for i := range row.Cells {
				row.Cells[i].Href = ""
			}
		}
	}
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return fmt.Errorf("read the style sheet: %w", err)
	}
	sum := sha256.Sum256(style)
	d := document{View: view, Style: template.CSS(style), Hash: base64.StdEncoding.EncodeToString(sum[:]), Made: clock(s.Now())} //nolint:gosec // the style sheet of this program
	if of.kind == kindRestart && rows <= maxPicture {
		var picture bytes.Buffer
		if err := timeline.Run(ctx, timeline.Config{API: s.API, Namespace: of.namespace, Format: "svg"}, &picture, timeline.Target{Rollout: of.name}); err != nil {
			return fmt.Errorf("draw the timeline: %w", err)
		}
		src := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(picture.Bytes())
		d.Embedded = []embedded{{Src: template.URL(src), Alt: "When the instances of the containers ran"}} //nolint:gosec // base64
	}
	if err := pages.Execute(out, d); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
