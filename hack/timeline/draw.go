package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"
	"time"
)

//go:embed timeline.svg.tmpl
var pictureTemplate string

const (
	width      = 860
	left       = 150 // of the time axis
	right      = 40
	laneHeight = 26
)

// bar is one instance of a container as drawn, in pixels.
type bar struct {
	X, Width, Y int
	New         bool // started after the disruption
	Label       string
}

type lane struct {
	Y    int
	Name string
}

// panel is one of the two recordings.
type panel struct {
	Y, Bottom   int
	Title       string
	Lanes       []lane
	Bars        []bar
	ReadyX      int
	ReadySecond string
	Note        string
}

type tick struct {
	X     int
	Label string
}

// draw renders both recordings on one time axis.
func draw(restart, deletion recording) ([]byte, error) {
	end := max(restart.length(), deletion.length()) + 300*time.Millisecond
	scale := func(d time.Duration) int {
		return left + int(float64(width-left-right)*max(float64(d), 0)/float64(end))
	}
	top := newPanel(44, "Restarted in place", restart, scale, end)
	bottom := newPanel(top.Bottom+44, "Deleted and recreated by its StatefulSet", deletion, scale, end)
	top.Note = fmt.Sprintf("app down for %s; IP %s as before", restart.down(), restart.spans[0].ip)
	bottom.Note = fmt.Sprintf("app down for %s; %s", deletion.down(), deletion.addresses())
	var ticks []tick
	for at := time.Duration(0); at < end; at += tickInterval(end) {
		ticks = append(ticks, tick{scale(at), fmt.Sprintf("%g s", at.Seconds())})
	}
	picture, err := template.New("timeline").Parse(pictureTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	var out bytes.Buffer
	err = picture.Execute(&out, map[string]any{
		"Width": width, "Height": bottom.Bottom + 54, "Panels": []panel{top, bottom}, "Ticks": ticks, "Axis": bottom.Bottom + 20,
	})
	if err != nil {
		return nil, fmt.Errorf("draw: %w", err)
	}
	return out.Bytes(), nil
}

func tickInterval(length time.Duration) time.Duration {
	for _, interval := range []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second} {
		if length/interval <= 12 {
			return interval
		}
	}
	return 10 * time.Second
}

// newPanel lays out one recording from y down. A container that still runs is drawn to the end of the axis.
func newPanel(y int, title string, r recording, scale func(time.Duration) int, axis time.Duration) panel {
	p := panel{Y: y, Title: title, ReadyX: scale(r.ready.Sub(r.begin)), ReadySecond: fmt.Sprintf("%.1f s", r.ready.Sub(r.begin).Seconds())}
	last := ""
	for _, s := range r.spans {
		if s.container != last {
			last = s.container
			p.Lanes = append(p.Lanes, lane{Y: y + 10 + len(p.Lanes)*laneHeight, Name: s.container})
		}
		begin, end := s.start.Sub(r.begin), axis
		if !s.end.IsZero() {
			end = s.end.Sub(r.begin)
		}
		p.Bars = append(p.Bars, bar{
			X: scale(begin), Width: max(scale(end)-scale(begin), 1), Y: p.Lanes[len(p.Lanes)-1].Y,
			New: begin > 0, Label: s.pod,
		})
	}
	p.Bottom = y + 10 + len(p.Lanes)*laneHeight
	return p
}

// length is the time from the disruption until nothing changes any more.
func (r recording) length() time.Duration {
	length := r.ready.Sub(r.begin)
	for _, s := range r.spans {
		length = max(length, s.start.Sub(r.begin), s.end.Sub(r.begin))
	}
	return length
}

func (r recording) addresses() string {
	for _, s := range r.spans {
		if s.ip != r.spans[0].ip {
			return fmt.Sprintf("IP %s -> %s", r.spans[0].ip, s.ip)
		}
	}
	return "IP " + r.spans[0].ip + " as before"
}
