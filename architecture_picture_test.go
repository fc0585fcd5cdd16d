package refit_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	pictureFile  = "docs/architecture.md"
	pictureBegin = "<!-- made from architecture_test.go: go test . -run Picture -update -->\n```mermaid\n"
	pictureEnd   = "```\n"

	solid, dashed = "-->", "-.->"
)

var update = flag.Bool("update", false, "write the picture in "+pictureFile+" instead of comparing it")

func TestPictureOfArchitectureIsTheTable(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(pictureFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), pictureBegin)
	old, after, closed := strings.Cut(rest, pictureEnd)
	if !found || !closed {
		t.Fatalf("no picture in %s: there has to be the line %s", pictureFile, pictureBegin)
	}
	switch picture := mermaid(rows); {
	case old == picture:
	case *update:
		if err := os.WriteFile(pictureFile, []byte(before+pictureBegin+picture+pictureEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the picture in %s is not that of architecture_test.go: go test . -run Picture -update", pictureFile)
	}
}

// mermaid draws the rows of the product. An arrow is left out where a longer way of arrows leads to the same room, so
// that the rest can be followed by eye; dashed is what is to come.
func mermaid(table []row) string {
	var b strings.Builder
	b.WriteString("flowchart TB\n")
	for i, row := range table {
		if row.tools {
			continue
		}
		fmt.Fprintf(&b, "  subgraph row%d[%q]\n    direction LR\n", i, row.name)
		for _, room := range row.rooms {
			fmt.Fprintf(&b, "    %s[%q]\n", node(room.path), room.path)
		}
		b.WriteString("  end\n")
	}
	for _, row := range table {
		if row.tools {
			continue
		}
		for _, room := range row.rooms {
			drawArrows(&b, table, room, solid, strings.Fields(room.imports))
			drawArrows(&b, table, room, dashed, strings.Fields(room.toCome))
		}
	}
	return b.String()
}

func drawArrows(b *strings.Builder, table []row, from room, arrow string, to []string) {
	for _, path := range to {
		if !slices.ContainsFunc(next(from, arrow), func(other string) bool { return other != path && leads(table, arrow, other, path) }) {
			fmt.Fprintf(b, "  %s %s %s\n", node(from.path), arrow, node(path))
		}
	}
}

// next are the rooms an arrow of a kind leads to; a dashed way may go along solid arrows, and not the reverse.
func next(r room, arrow string) []string {
	if arrow == solid {
		return strings.Fields(r.imports)
	}
	return strings.Fields(r.imports + " " + r.toCome)
}

// leads says whether a way of arrows leads from one room to another.
func leads(table []row, arrow, from, to string) bool {
	start, at := find(table, from)
	return at >= 0 && (from == to || slices.ContainsFunc(next(start, arrow), func(other string) bool { return leads(table, arrow, other, to) }))
}

func node(path string) string { return strings.NewReplacer("/", "_", "-", "_").Replace(path) }
