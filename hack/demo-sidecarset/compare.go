package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/refit-project/refit/examples/hotupgrade/traffic"
)

//go:embed requests.svg.tmpl
var picture string

// compare prints what became of the requests, and draws it.
func (d *demo) compare(hot, cold *recording) error {
	fmt.Fprintf(d.Out, "\n  %-24s %12s %12s\n", "two upgrades under load", "hot", "restarted")
	for _, row := range []struct {
		name  string
		value func(*recording) string
	}{
		{"requests", func(r *recording) string { return fmt.Sprint(r.total.Requests()) }},
		{"failed", func(r *recording) string { return fmt.Sprint(r.total.Failed) }},
		{"  connection refused", func(r *recording) string { return fmt.Sprint(r.total.Refused) }},
		{"8 clients kept open", func(r *recording) string { return fmt.Sprintf("%d opened", r.total.Kept) }},
		{"slowest answer", func(r *recording) string { return fmt.Sprintf("%.0f ms", r.total.Slowest) }},
		{"upgrades took", func(r *recording) string { return strings.Join(r.durations(), ", ") }},
	} {
		fmt.Fprintf(d.Out, "  %-24s %12s %12s\n", row.name, row.value(hot), row.value(cold))
	}
	drawing, err := draw(hot, cold)
	if err != nil {
		return err
	}
	file := filepath.Join(d.Root, "dist", "hot-upgrade.svg")
	if err := os.WriteFile(file, drawing, 0o644); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	fmt.Fprintf(d.Out, "\n  requests over time: %s\n", file)
	if hot.total.Failed > 0 {
		return errors.New("requests have failed: " + hot.total.Error)
	}
	if hot.total.Kept != 8 {
		return errors.New("connections have been closed")
	}
	return nil
}

func (r *recording) durations() []string {
	var list []string
	for i := range r.changes {
		list = append(list, fmt.Sprintf("%.1f s", r.completed[i].Sub(r.changes[i]).Seconds()))
	}
	return list
}

const (
	width, left, right  = 860, 60, 20
	panelHeight, spread = 150, 80
)

// column is an interval: answers by version from the bottom, failures at the top, in pixels.
type column struct {
	X, Width float64
	Parts    []part
}

type part struct {
	Y, Height float64
	Color     string
	Label     string
}

type mark struct {
	X     float64
	Label string
}

type panel struct {
	Top, Bottom   int
	Title, Result string
	Columns       []column
	Marks         []mark
}

// colors of the versions in the order in which they come, and of failures.
var colors = []string{"#7b8794", "#2f855a", "#2563eb", "#8b5cf6"}

const failure = "#d64545"

// draw renders both recordings, second by second below each other.
func draw(hot, cold *recording) ([]byte, error) {
	parsed, err := template.New("requests").Parse(picture)
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	length := max(hot.length(), cold.length())
	most := max(hot.most(), cold.most())
	if length <= 0 || most == 0 {
		return nil, errors.New("draw: no requests")
	}
	panels := []panel{
		hot.panel("Hot upgrade: listening socket and connections are handed over", 40, length, most),
		cold.panel("The container is restarted", 40+panelHeight+spread, length, most),
	}
	var ticks []mark
	for at := time.Duration(0); at < length; at += tick(length) {
		ticks = append(ticks, mark{position(at, length), fmt.Sprintf("%g s", at.Seconds())})
	}
	bottom := panels[1].Bottom
	var out bytes.Buffer
	err = parsed.Execute(&out, map[string]any{
		"Width": width, "Height": bottom + 60, "Bottom": bottom, "Panels": panels, "Ticks": ticks,
		"Rate": int(float64(most) / traffic.Length.Seconds()),
	})
	if err != nil {
		return nil, fmt.Errorf("draw: %w", err)
	}
	return out.Bytes(), nil
}

func tick(length time.Duration) time.Duration {
	for _, interval := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second} {
		if length/interval <= 14 {
			return interval
		}
	}
	return 30 * time.Second
}

func position(at, length time.Duration) float64 {
	return left + float64(width-left-right)*float64(at)/float64(length)
}

func (r *recording) length() time.Duration {
	if len(r.intervals) == 0 {
		return 0
	}
	return r.intervals[len(r.intervals)-1].Time.Sub(r.begin())
}

func (r *recording) begin() time.Time { return r.intervals[0].Time.Add(-traffic.Length) }

// most requests in an interval.
func (r *recording) most() int {
	most := 0
	for i := range r.intervals {
		most = max(most, r.intervals[i].Requests())
	}
	return most
}

func (r *recording) panel(title string, top int, length time.Duration, most int) panel {
	p := panel{Top: top, Bottom: top + panelHeight, Title: title}
	p.Result = fmt.Sprintf("%d requests, %d failed, %d of them refused", r.total.Requests(), r.total.Failed, r.total.Refused)
	known := map[string]string{}
	for i := range r.intervals {
		interval := &r.intervals[i]
		at := interval.Time.Sub(r.begin())
		c := column{X: position(at-traffic.Length, length), Width: position(traffic.Length, length) - left}
		y := float64(p.Bottom)
		add := func(requests int, color, label string) {
			if requests == 0 {
				return
			}
			height := panelHeight * float64(requests) / float64(most)
			y -= height
			c.Parts = append(c.Parts, part{y, height, color, fmt.Sprintf("%d %s", requests, label)})
		}
		for _, version := range interval.Versions() {
			if known[version] == "" {
				known[version] = colors[len(known)%len(colors)]
			}
			add(interval.Answers[version], known[version], "answered by version "+version)
		}
		add(interval.Failed, failure, "failed")
		p.Columns = append(p.Columns, c)
	}
	for i := range r.changes {
		p.Marks = append(p.Marks, mark{position(r.changes[i].Sub(r.begin()), length), "new image"}, mark{position(r.completed[i].Sub(r.begin()), length), "completed"})
	}
	return p
}
