package report

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
)

// Figure is one measured value, beside the floor of the same run where there is one.
type Figure struct {
	// Name says what was measured, in parts with slashes between them: "40 at once/last".
	Name string
	// Unit is as benchstat wants it: ns/op, B, writes/change.
	Unit  string
	Value float64
	Floor float64 // 0: none
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9/.=-]+`)

// benchstat are the figures in the format of go test -bench, so that benchstat compares two runs.
func benchstat(name string, figures []Figure) []byte {
	var out bytes.Buffer
	line := func(parts string, value float64, unit string) {
		fmt.Fprintf(&out, "Benchmark%s/%s 1 %g %s\n", strings.ToUpper(name[:1])+name[1:], notInName.ReplaceAllString(parts, "_"), value, unit)
	}
	for _, f := range figures {
		line(f.Name, f.Value, f.Unit)
		if f.Floor > 0 {
			line(f.Name+"/floor", f.Floor, f.Unit)
		}
	}
	return out.Bytes()
}

const (
	plotWidth  = 860
	labelWidth = 330
	barWidth   = 400
	barHeight  = 12
	rowHeight  = 36
)

// plot draws the figures as bars, each with its floor below it; the longest of a unit is as wide as there is room.
func plot(name string, figures []Figure) []byte {
	most := map[string]float64{}
	for _, f := range figures {
		most[f.Unit] = max(most[f.Unit], f.Value, f.Floor)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, rowHeight*(len(figures)+1))
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="#fff"/><text x="8" y="20" font-weight="bold">%s: measured (blue), floor of the same run (grey)</text>`+"\n",
		html.EscapeString(name))
	for i, f := range figures {
		top := rowHeight * (i + 1)
		fmt.Fprintf(&out, `<text x="8" y="%d">%s</text>`+"\n", top+barHeight, html.EscapeString(f.Name))
		bar(&out, top, f.Value, most[f.Unit], f.Unit, "#2563eb")
		if f.Floor > 0 {
			bar(&out, top+barHeight+2, f.Floor, most[f.Unit], f.Unit, "#9ca3af")
		}
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func bar(out *bytes.Buffer, top int, value, most float64, unit, color string) {
	width := 0.0
	if most > 0 {
		width = max(value, 0) / most * barWidth
	}
	fmt.Fprintf(out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d" font-size="11">%s</text>`+"\n",
		labelWidth, top, width, barHeight, color, labelWidth+width+6, top+barHeight-2, html.EscapeString(inWords(value, unit)))
}

// inWords has times and sizes in units that people read.
func inWords(value float64, unit string) string {
	switch unit {
	case "ns/op":
		return fmt.Sprintf("%.4g ms", value/1e6)
	case "B":
		return fmt.Sprintf("%.1f MiB", value/(1<<20))
	}
	return fmt.Sprintf("%.4g %s", value, unit)
}
