// Package refit_test checks the architecture: which room may import which, and what no room may import. The
// arrows are those of docs/architecture.md.
package refit_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/refit-project/refit/"

// arrows maps each room to the rooms it may import. A room is a top-level folder, or a longer path where a part
// of a folder is a room of its own. Test files are not looked at.
var arrows = map[string][]string{
	"identity":    {},
	"api":         {"identity"},
	"kubelet":     {"identity"},
	"result":      {"identity"},
	"crr":         {"api", "result", "kubelet", "identity"},
	"probe":       {"api", "result", "identity"},
	"podprobe":    {"api", "result", "kubelet", "identity"},
	"image":       {"api", "result", "kubelet", "identity"},
	"inplace":     {"api", "result", "kubelet", "identity"},
	"sidecarset":  {"api", "result", "kubelet", "identity"},
	"hotupdate":   {"api", "result", "identity"},
	"cri":         {"kubelet", "identity"},
	"signal":      {"identity"},
	"kube":        {"api", "kubelet", "identity"},
	"memory":      {"identity"},
	"kube/ownpod": {"api", "identity"},
	"daemon":      {"api", "crr", "probe", "image", "inplace", "result", "cri", "kube", "memory", "kubelet", "identity"},
	"sidecarmode": {"api", "crr", "probe", "hotupdate", "result", "signal", "kube/ownpod", "memory", "kubelet", "identity"},
	"manager":     {"api", "crr", "podprobe", "probe", "image", "inplace", "sidecarset", "result", "kube", "kubelet", "identity"},
	"cmd":         {"api", "cri", "daemon", "sidecarmode", "manager", "kube", "identity"},
	"testkit":     {"api", "cri", "crr", "probe", "result", "signal", "kube", "kubelet", "identity"},
	"test":        {"api", "hack", "cri", "crr", "kube", "kubelet", "identity", "testkit"},
	"hack":        {"api", "cri", "identity"},
	"hack/chaos":  {"hack", "test"},
	"docs":        {"sidecarmode", "result"},
	"bench":       {"test", "hack", "kube", "api", "cri", "crr", "signal", "probe", "hotupdate", "kubelet", "identity"},
}

// forbidden maps a package to the import paths that may not be among its dependencies, with why.
var forbidden = map[string]map[string]string{
	"cmd/refit-daemon": {
		"k8s.io/client-go/kubernetes":    "the typed clientset costs every node 10 MiB",
		"sigs.k8s.io/controller-runtime": "the daemon's caches are narrower and its memory is counted",
		"k8s.io/cri-client":              "its dependencies cost memory on every node",
		"github.com/containerd":          "the runtime is reached through CRI alone",
	},
	"cmd/refit-sidecar": {
		"k8s.io/client-go/kubernetes":    "every serverless pod pays for it",
		"sigs.k8s.io/controller-runtime": "every serverless pod pays for it",
		"k8s.io/cri-client":              "a sidecar has no runtime socket",
		"k8s.io/cri-api":                 "a sidecar has no runtime socket",
		"github.com/containerd":          "every serverless pod pays for it",
	},
	"crr":         {"k8s.io/client-go": "a decision has no client"},
	"kubelet":     {"k8s.io/client-go": "a rule of kubelet has no client"},
	"podprobe":    {"k8s.io/client-go": "a decision has no client"},
	"api/v1beta1": {"sigs.k8s.io/controller-runtime": "the sidecar imports the wire types", "k8s.io/client-go": "wire types have no client"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func list(t *testing.T) []goPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("read go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// room finds the longest room that holds a package; empty for the root and for foreign packages.
func room(importPath string) string {
	path, ours := strings.CutPrefix(importPath, module)
	for ours && path != "" {
		if _, ok := arrows[path]; ok {
			return path
		}
		slash := strings.LastIndexByte(path, '/')
		path = path[:max(slash, 0)]
	}
	return ""
}

func TestArrowsPointDown(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if !strings.HasPrefix(p.ImportPath, module) {
			continue
		}
		from := room(p.ImportPath)
		if from == "" {
			t.Errorf("%s is in no room of docs/architecture.md", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			to := room(imported)
			if to != "" && to != from && !slices.Contains(arrows[from], to) {
				t.Errorf("%s imports %s: %s may import only %v", p.ImportPath, imported, from, arrows[from])
			}
		}
	}
}

func TestForbiddenDependencies(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		not := map[string]string{"k8s.io/kubernetes": "small facts of kubelet are re-implemented with golden tests"}
		for path, why := range forbidden[strings.TrimPrefix(p.ImportPath, module)] {
			not[path] = why
		}
		for _, dep := range p.Deps {
			for path, why := range not {
				if dep == path || strings.HasPrefix(dep, path+"/") {
					t.Errorf("%s depends on %s: %s", p.ImportPath, dep, why)
				}
			}
		}
	}
}
