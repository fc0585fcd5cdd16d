package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
)

const (
	unitWidth  = 38 // of the dashboard's grid, which has 24 columns
	unitHeight = 27
	top        = 40 // room for the title of the picture
	padding    = 10
	axisWidth  = 58
	titleRoom  = 26
	lineHeight = 14
	maxLegends = 8
	longLegend = 20 // characters, beside which there is no room for another legend
)

var colours = []string{"#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4b5563"}

// box is a rectangle of the picture, and the time that its width stands for.
type box struct {
	x, y, w, h float64
	from, to   time.Time
}

func (b box) at(milliseconds int64) float64 {
	return b.x + b.w*float64(milliseconds-b.from.UnixMilli())/float64(max(b.to.UnixMilli()-b.from.UnixMilli(), 1))
}

// draw draws the panels where the dashboard has them.
func draw(results []result, from, to time.Time) []byte {
	rows := 0
	for _, r := range results {
		rows = max(rows, r.GridPos.Y+r.GridPos.H)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", 24*unitWidth, rows*unitHeight+top)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="#f3f4f6"/><text x="%d" y="26" font-size="16" font-weight="bold">Refit: %s on a test cluster</text>`+"\n",
		padding, to.Sub(from).Round(time.Second))
	for _, r := range results {
		g := r.GridPos
		outer := box{float64(g.X*unitWidth) + 4, float64(g.Y*unitHeight+top) + 4, float64(g.W*unitWidth) - 8, float64(g.H*unitHeight) - 8, from, to}
		fmt.Fprintf(&out, `<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="3" fill="#fff" stroke="#d1d5db"/><text x="%.0f" y="%.0f" font-size="12" font-weight="bold">%s</text>`+"\n",
			outer.x, outer.y, outer.w, outer.h, outer.x+padding, outer.y+18, html.EscapeString(r.Title))
		inner := box{outer.x + padding, outer.y + titleRoom, outer.w - 2*padding, outer.h - titleRoom - padding, from, to}
		switch {
		case len(r.series) == 0:
			text(&out, inner.x, inner.y+lineHeight, "#6b7280", "nothing in this time")
		case r.Type == "heatmap":
			heatmap(&out, inner, r.series)
		case r.Type == "timeseries":
			lines(&out, inner, r)
		default:
			values(&out, inner, r)
		}
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func text(out *bytes.Buffer, x, y float64, colour, words string) {
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", x, y, colour, html.EscapeString(words))
}

// values writes the last value of each series.
func values(out *bytes.Buffer, in box, of result) {
	for i, s := range of.series {
		text(out, in.x, in.y+float64(lineHeight*(i+1)), "#111827", strings.TrimSpace(s.legend+" "+of.amount(last(s))))
	}
}

func last(s series) float64 {
	if len(s.points) == 0 {
		return math.NaN()
	}
	return s.points[len(s.points)-1].F
}

func highest(points []promql.FPoint) float64 {
	most := 0.0
	for _, p := range points {
		if !math.IsNaN(p.F) && !math.IsInf(p.F, 0) {
			most = max(most, p.F)
		}
	}
	return most
}

// lines draws series over time, with the highest value of each in the legend below. Those that are highest come first.
func lines(out *bytes.Buffer, in box, of result) {
	all := of.series
	slices.SortStableFunc(all, func(a, b series) int { return cmp.Compare(highest(b.points), highest(a.points)) })
	shown := all[:min(len(all), maxLegends)]
	columns := 2
	if len(shown) <= 4 && slices.ContainsFunc(shown, func(s series) bool { return len(s.legend) > longLegend }) {
		columns = 1
	}
	in.h -= float64(lineHeight*((len(shown)+columns-1)/columns)) + lineHeight
	in.x, in.w = in.x+axisWidth, in.w-axisWidth
	most := highest(shown[0].points)
	if most == 0 {
		most = 1
	}
	axes(out, in, most, of.amount)
	for i, s := range shown {
		for _, part := range unbroken(s.points) {
			var path strings.Builder
			for _, p := range part {
				fmt.Fprintf(&path, "%.1f,%.1f ", in.at(p.T), in.y+in.h*(1-p.F/most))
			}
			fmt.Fprintf(out, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`+"\n", colours[i], strings.TrimSpace(path.String()))
		}
		x, y := in.x-axisWidth+float64(i%columns)*(in.w+axisWidth)/2, in.y+in.h+2*lineHeight+float64(lineHeight*(i/columns))
		fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="10" height="3" fill="%s"/>`+"\n", x, y-4, colours[i])
		words := fmt.Sprintf("%s, at most %s", s.legend, of.amount(highest(s.points)))
		if i == maxLegends-1 && len(all) > maxLegends {
			words = fmt.Sprintf("%d more", len(all)-maxLegends+1)
		}
		text(out, x+14, y, "#374151", words)
	}
}

// axes draws lines at nothing, at half and at the most, and the minutes.
func axes(out *bytes.Buffer, in box, most float64, amount func(float64) string) {
	for _, part := range []float64{0, 0.5, 1} {
		y := in.y + in.h*(1-part)
		fmt.Fprintf(out, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#e5e7eb"/><text x="%.1f" y="%.1f" text-anchor="end" fill="#6b7280">%s</text>`+"\n",
			in.x, in.x+in.w, y, y, in.x-6, y+4, amount(most*part))
	}
	minutes(out, in)
}

func minutes(out *bytes.Buffer, in box) {
	step := max(time.Minute, (in.to.Sub(in.from) / 6).Round(time.Minute))
	for at := time.Duration(0); at <= in.to.Sub(in.from); at += step {
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#6b7280">%d min</text>`+"\n", in.at(in.from.Add(at).UnixMilli()), in.y+in.h+lineHeight, int(at.Minutes()))
	}
}

// unbroken splits points where there is no value.
func unbroken(points []promql.FPoint) (parts [][]promql.FPoint) {
	var part []promql.FPoint
	for _, p := range points {
		if math.IsNaN(p.F) || math.IsInf(p.F, 0) {
			if len(part) > 0 {
				parts = append(parts, part)
			}
			part = nil
			continue
		}
		part = append(part, p)
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// heatmap draws the buckets of a histogram over time. Buckets of Prometheus hold all smaller values too, which are taken off.
func heatmap(out *bytes.Buffer, in box, buckets []series) {
	bound := func(s series) float64 {
		value, err := strconv.ParseFloat(s.le, 64)
		if err != nil {
			return math.Inf(1)
		}
		return value
	}
	slices.SortFunc(buckets, func(a, b series) int { return cmp.Compare(bound(a), bound(b)) })
	counts, most := make([][]promql.FPoint, len(buckets)), 0.0
	smaller := map[int64]float64{}
	for i, bucket := range buckets {
		for _, p := range bucket.points {
			counts[i] = append(counts[i], promql.FPoint{T: p.T, F: max(p.F-smaller[p.T], 0)})
			smaller[p.T] = p.F
		}
		most = max(most, highest(counts[i]))
	}
	in.h -= lineHeight
	in.x, in.w = in.x+axisWidth, in.w-axisWidth
	height := in.h / float64(len(buckets))
	for i, row := range counts {
		y := in.y + in.h - height*float64(i+1)
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end" fill="#6b7280" font-size="10">%s s</text>`+"\n", in.x-6, y+height/2+3, html.EscapeString(buckets[i].le))
		for j, p := range row {
			width := 4.0
			if j+1 < len(row) {
				width = in.at(row[j+1].T) - in.at(p.T)
			}
			if p.F > 0 && most > 0 {
				fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#2563eb" fill-opacity="%.2f"/>`+"\n", in.at(p.T), y, width, height, 0.15+0.85*p.F/most)
			}
		}
	}
	minutes(out, in)
}
