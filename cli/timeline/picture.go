package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/cli/timeline/svg"
	"github.com/refit-project/refit/internal/kubelet"
)

// begin returns the first known time.
func (r *report) begin() (first time.Time) {
	for _, m := range r.moments {
		if m.Time != nil && (first.IsZero() || m.at.Before(first)) {
			first = m.at
		}
	}
	return first
}

// picture draws a lane for each container that was restarted, and for a single request also for the other containers of the
// pod.
func (r *report) picture() svg.Picture {
	begin := r.begin()
	panel := svg.Panel{Title: r.line.Name, Note: r.summary()}
	var unknown []string
	for _, one := range r.restarts {
		for _, container := range one.request.Spec.Containers {
			lane := container.Name
			if len(r.restarts) > 1 {
				lane = one.request.Spec.PodName + "/" + container.Name
			}
			bars, missing := one.bars(lane, container.Name, begin)
			panel.Bars, unknown = append(panel.Bars, bars...), append(unknown, missing...)
		}
		if len(r.restarts) == 1 {
			panel.Bars = append(panel.Bars, one.others(begin)...)
		}
	}
	for _, m := range r.moments {
		if m.Time != nil && m.Container == "" && (m.What == whatCompleted || strings.HasPrefix(m.What, "failed")) && len(r.restarts) == 1 {
			panel.Marks = append(panel.Marks, svg.Mark{At: m.at.Sub(begin), Label: fmt.Sprintf("%s after %.1f s", m.What, m.at.Sub(begin).Seconds())})
		}
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		panel.Note += "; not known: " + strings.Join(slices.Compact(unknown), ", ")
	}
	return svg.Picture{Title: r.line.Name + ": " + r.summary(), Panels: []svg.Panel{panel}}
}

// bars returns the bars of one container, and what is not known about it.
func (r restart) bars(lane, container string, begin time.Time) (bars []svg.Bar, missing []string) {
	since, notYet := map[string]time.Duration{}, map[string]bool{}
	for _, m := range r.moments() {
		switch {
		case m.Container != container:
		case m.Time != nil:
			since[m.What] = max(m.at.Sub(begin), time.Millisecond)
		case m.NotYet:
			notYet[m.What] = true
		default:
			missing = append(missing, m.What)
		}
	}
	stop, ended, started := since[whatStopping], since[whatEnded], since[whatStarted]
	label := func(what string) string { return r.request.Spec.PodName + ": " + what }
	switch {
	case ended > 0:
		bars = append(bars, svg.Bar{Lane: lane, Label: label("previous instance"), State: svg.StateBefore, End: ended})
	case notYet[whatEnded]:
		bars = append(bars, svg.Bar{Lane: lane, Label: label("previous instance"), State: svg.StateBefore, End: stop})
		if stop > 0 {
			bars = append(bars, svg.Bar{Lane: lane, Label: label("being stopped"), State: svg.StateStopping, Start: stop})
		}
	case stop > 0:
		bars = append(bars, svg.Bar{Lane: lane, Label: label("previous instance"), State: svg.StateBefore, End: stop})
		if started > stop {
			bars = append(bars, svg.Bar{Lane: lane, Label: label("being stopped; its end is not known"), State: svg.StateStopping, Start: stop, End: started})
		}
	default:
		bars = append(bars, svg.Bar{Lane: lane, Label: label("previous instance; its end is not known"), State: svg.StateStopping, End: started})
	}
	if started > 0 {
		bars = append(bars, svg.Bar{Lane: lane, Label: label("new instance"), State: svg.StateAfter, Start: started})
	}
	return bars, missing
}

// others returns bars for containers of the pod that ran before the request and are still running.
func (r restart) others(begin time.Time) (bars []svg.Bar) {
	if r.pod == nil {
		return nil
	}
	for _, container := range r.pod.Spec.Containers {
		status := kubelet.StatusOf(r.pod, container.Name)
		named := false
		for _, c := range r.request.Spec.Containers {
			named = named || c.Name == container.Name
		}
		if !named && status != nil && status.State.Running != nil && status.State.Running.StartedAt.Time.Before(begin) {
			bars = append(bars, svg.Bar{Lane: container.Name, Label: r.pod.Name + ": not restarted", State: svg.StateBefore})
		}
	}
	return bars
}
