package main

import (
	"fmt"
	"io"
	"time"

	"github.com/refit-project/refit/cli/timeline/svg"
)

// draw renders both recordings on one time axis.
func draw(out io.Writer, restart, deletion recording) error {
	top, bottom := restart.panel("Restarted in place"), deletion.panel("Deleted and recreated by its StatefulSet")
	top.Note = fmt.Sprintf("app down for %s; IP %s as before", restart.down(), restart.spans[0].ip)
	bottom.Note = fmt.Sprintf("app down for %s; %s", deletion.down(), deletion.addresses())
	return svg.Draw(out, svg.Picture{Title: "A container restarted in place, beside the same pod deleted and recreated", Panels: []svg.Panel{top, bottom}})
}

// panel has a lane for each container.
func (r recording) panel(title string) svg.Panel {
	ready := r.ready.Sub(r.begin)
	p := svg.Panel{Title: title, Marks: []svg.Mark{{At: ready, Label: fmt.Sprintf("ready after %.1f s", ready.Seconds())}}}
	for _, s := range r.spans {
		bar := svg.Bar{Lane: s.container, Label: s.pod, State: svg.StateBefore, Start: s.start.Sub(r.begin)}
		if bar.Start > 0 {
			bar.State = svg.StateAfter
		}
		if !s.end.IsZero() {
			bar.End = max(s.end.Sub(r.begin), time.Nanosecond)
		}
		p.Bars = append(p.Bars, bar)
	}
	return p
}

func (r recording) addresses() string {
	for _, s := range r.spans {
		if s.ip != r.spans[0].ip {
			return fmt.Sprintf("IP %s -> %s", r.spans[0].ip, s.ip)
		}
	}
	return "IP " + r.spans[0].ip + " as before"
}
