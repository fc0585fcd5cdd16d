package docs_test

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	modulePath   = "github.com/refit-project/refit/"
	maxFileLines = 300
	architecture = "architecture.md"
	pictureBegin = "<!-- made from architecture_test.go: go test ./docs -run Picture -update -->\n```mermaid\n"
	pictureEnd   = "```\n"
)

// layers are the rows of the picture. A package imports packages of lower rows, and of its own unit. Folders that are not named are for
// tests and developers: they import anything, and no row imports them.
var layers = []struct {
	name    string
	folders string // separated by spaces; CAPABILITY stands for each capability
	open    bool   // the folders of the row may import each other
}{
	{"programs", "cmd", false},
	{"wiring of each program", "daemon manager sidecarmode cli", false},
	{"adapters of a capability", "CAPABILITY/node CAPABILITY/control CAPABILITY/inpod CAPABILITY/webhook CAPABILITY/cli", false},
	{"decisions of a capability", "CAPABILITY", false},
	{"plugin interface of the sidecar", "plugin", false},
	{"runtime, processes, shared packages", "cri signal internal", true},
	{"API types", "api", false},
}

// capabilities are the capabilities that the decisions of each one may use. Its adapters may use what is in adapterUses too.
var (
	capabilities = map[string]string{"crr": "", "hotupdate": "", "image": "", "inplace": "", "probe": "", "rollout": "crr inplace", "sidecarset": "inplace rollout"}
	adapterUses  = map[string]string{"crr": "inplace", "hotupdate": "probe", "inplace": "crr image rollout"}
)

// clients are not imported by decisions, which are functions of values.
var clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}

// place returns the row of a package, and its unit, whose packages may import each other. The row is -1 for tests and tools.
func place(folder string) (row int, unit string) {
	parts := strings.Split(folder, "/")
	for row, layer := range layers {
		for _, pattern := range strings.Fields(layer.folders) {
			adapter, isCapability := strings.CutPrefix(pattern, "CAPABILITY")
			_, known := capabilities[parts[0]]
			switch {
			case isCapability && known && (adapter == "" || len(parts) > 1 && "/"+parts[1] == adapter), pattern == parts[0] && pattern != "cmd":
				return row, parts[0]
			case pattern == parts[0] && len(parts) > 1:
				return row, parts[0] + "/" + parts[1] // programs do not share packages
			}
		}
	}
	return -1, ""
}

// violation returns why a package may not import another one; empty if it may.
func violation(from, to string) string {
	row, unit := place(from)
	below, other := place(to)
	_, isCapability := capabilities[other]
	uses := capabilities[unit]
	if row >= 0 && row < 3 {
		uses += " " + adapterUses[unit]
	}
	switch {
	case row < 0 || row == below && (unit == other || layers[row].open):
		return ""
	case below < 0:
		return "it is for tests and tools"
	case below < row:
		return fmt.Sprintf("%s do not import %s", layers[row].name, layers[below].name)
	case row == below && !slices.Contains(strings.Fields(uses), other):
		return fmt.Sprintf("%s and %s are of one row", unit, other)
	case row == 2 && isCapability && unit != other && !slices.Contains(strings.Fields(uses), other):
		return unit + " does not use " + other
	}
	return ""
}

func TestImportsFollowTheLayers(t *testing.T) {
	t.Parallel()
	walkGo(t, func(path string, content []byte) {
		if lines := bytes.Count(content, []byte("\n")); lines > maxFileLines && !strings.HasPrefix(filepath.Base(path), "zz_generated") {
			t.Errorf("%s has %d lines, at most %d: split it by what it is about", path, lines, maxFileLines)
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, content, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		row, _ := place(filepath.Dir(path))
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if folder, ours := strings.CutPrefix(imported, modulePath); ours {
				if why := violation(filepath.Dir(path), folder); why != "" {
					t.Errorf("%s imports %s: %s", path, folder, why)
				}
			}
			for _, client := range clients {
				if row == 3 && within(imported, client) && imported != "k8s.io/client-go/util/jsonpath" {
					t.Errorf("%s imports %s: a decision has no client", path, imported)
				}
			}
		}
	})
}

func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	for imports, want := range map[string]bool{
		"cmd/refit-daemon daemon": true, "cmd/refit-daemon cmd/refit-manager/x": false, "daemon crr/node/report": true, "daemon manager": false, "crr/node crr": true,
		"crr crr/node": false, "crr/node probe/node": false, "crr/node probe": false, "rollout/control crr": true, "rollout crr/record": true, "crr rollout": false,
		"hotupdate/inpod probe/endpoint": true, "hotupdate probe": false, "probe plugin": true, "plugin probe": false, "cri internal/wait": true, "api internal/wait": false,
		"crr test/kit/poll": false, "test/e2e daemon": true, "internal/cache api": true, "internal/cache cri": true, "manager image/control": true, "crr/inpod sidecarmode": false,
	} {
		from, to, _ := strings.Cut(imports, " ")
		if why := violation(from, to); (why == "") != want {
			t.Errorf("%s: %q, allowed: want %t", imports, why, want)
		}
	}
}

func within(path, top string) bool { return path == top || strings.HasPrefix(path, top+"/") }
