package docs_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestPictureOfArchitectureIsTrue(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(architecture)
	before, rest, found := strings.Cut(string(content), pictureBegin)
	_, after, closed := strings.Cut(rest, pictureEnd)
	if err != nil || !found || !closed {
		t.Fatalf("no picture in %s, %v: there has to be the line %s", architecture, err, pictureBegin)
	}
	drawn := before + pictureBegin + picture() + pictureEnd + after
	if *update && drawn != string(content) {
		err = os.WriteFile(architecture, []byte(drawn), 0o600)
	} else if drawn != string(content) {
		t.Errorf("the picture in %s is outdated: go test ./docs -run Picture -update", architecture)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// picture draws a box for each layer, and for each capability the imports of the ones that it uses.
func picture() string {
	var b strings.Builder
	b.WriteString("flowchart TB\n")
	for i, layer := range layers {
		names := strings.Fields(layer.folders)
		if layer.folders == "CAPABILITY" {
			fmt.Fprintf(&b, "  subgraph row%d[%q]\n    direction LR\n", i, layer.name)
			for _, name := range slices.Sorted(maps.Keys(capabilities)) {
				fmt.Fprintf(&b, "    %s\n", name)
				for _, other := range strings.Fields(capabilities[name]) {
					fmt.Fprintf(&b, "    %s --> %s\n", name, other)
				}
			}
			b.WriteString("  end\n")
		} else {
			fmt.Fprintf(&b, "  row%d[\"%s: %s\"]\n", i, layer.name, strings.ReplaceAll(strings.Join(names, ", "), "CAPABILITY/", ""))
		}
		if i > 0 {
			fmt.Fprintf(&b, "  row%d --> row%d\n", i-1, i)
		}
	}
	return b.String()
}
