package foreign_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// decodes are the packages that decode or parse without package foreign, with the reason: what they read is bounded where it enters,
// or nobody else writes it.
var decodes = map[string]string{
	"internal/foreign":         "it is the door",
	"api/v1beta1":              "a module of its own, which cannot import foreign: lengths and years are bounded there, whole objects by their callers",
	"image/credentialprovider": "the configuration of the node's administrator, at most 1 MiB",
	"hotupdate/cli":            "answers of at most 4 MiB of a sidecar that the user asks, decoded without quantities",
	"hotupdate/manifest":       "manifests of at most 8 MiB, whose elements have a least length; the digest of a manifest is compared",
	"inplace/plan":             "values of the API that it has encoded itself",
	"internal/console":         "what the user has typed",
	"internal/table":           "objects that it has encoded itself",
	"internal/kube":            "answers of the API server: reviews and discovery",
	"internal/kube/ownpod":     "answers of the API server about one pod, whose quantities it has decoded before it stored them",
	"internal/kubelet":         "a duration in a message of kubelet",
	"crr/control":              "requests without quantities, at most 7 MiB as controller-runtime reads them",
	"rollout/control":          "rollouts and schedules without quantities, at most 7 MiB as controller-runtime reads them",
	"sidecarset/webhook":       "SidecarSets that foreign.CheckObject has checked",
	"rollout/control/workload": "workloads of at most the size that the API server accepts, decoded into its types; foreign.Spec checks their templates before they are compared",
	"sidecarset/render":        "files of the user of the command",
	"probe":                    "answers of at most 10 KiB, decoded without types",
	"internal/result/output":   "values that it has encoded itself",
	"sidecarmode":              "answers of the API server about the configured object, decoded without types",
	"plugin/config":            "the configuration of the sidecar's owner",
	"hotupdate/inpod/httpapi":  "bodies of at most 8 MiB of callers that are authenticated or in the same pod",
	"hotupdate/inpod/record":   "answers of the API server, and at most 1 MiB of YAML of the reference implementation, decoded into text",
	"sidecarset/admission":     "a SidecarSet that foreign.CheckObject has checked, decoded without types",
	"sidecarset/annotation":    "a part of an annotation that foreign.JSON has read, which calls it",
	"sidecarset/inject":        "a pod that foreign.CheckObject has checked",
	"sidecarset/policy":        "patches that it has made itself",
	"sidecarset/revision":      "revisions in the namespace of Refit, which it has encoded itself",
	"cli/completion":           "what the user has typed, and answers of the API server",
	"cmd/kubectl-refit/usage":  "what the user has typed",
	"cli/dashboard":            "what other commands of this program have encoded",
	"rollout/cli":              "what the user has typed",
	"inplace/cli/change":       "what the user has typed",
}

// doors are the functions that read text of others without bounds, by the import path of their package.
var doors = map[string][]string{
	"encoding/json":                                        {"Unmarshal", "NewDecoder"},
	"k8s.io/apimachinery/pkg/util/json":                    {"Unmarshal"},
	"sigs.k8s.io/yaml":                                     {"Unmarshal", "UnmarshalStrict", "YAMLToJSON"},
	"go.yaml.in/yaml/v3":                                   {"Unmarshal", "NewDecoder"},
	"k8s.io/apimachinery/pkg/api/resource":                 {"ParseQuantity"},
	"time":                                                 {"Parse", "ParseDuration"},
	"k8s.io/apimachinery/pkg/apis/meta/v1":                 {"LabelSelectorAsSelector"},
	"k8s.io/apimachinery/pkg/labels":                       {"Parse", "ParseToRequirements"},
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission": {"NewDecoder"},
}

// undecoded are the folders of tools and tests, which read what the project has written.
var undecoded = []string{"hack", "test", "examples", "tools", "docs", "deploy", "dist"}

func TestTextOfOthersIsReadByOneDoor(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || slices.Contains(undecoded, path)):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		calls, err := callsOfDoors(path, text)
		if len(calls) > 0 {
			found[filepath.Dir(path)] = append(found[filepath.Dir(path)], calls...)
		}
		return err
	})
	if err != nil {
		t.Fatalf("read the files: %v", err)
	}
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		if decodes[folder] == "" {
			t.Errorf("%s calls %s: text of others is read through package foreign; otherwise say in decode_test.go why it is bounded",
				folder, strings.Join(found[folder], ", "))
		}
	}
	for folder := range decodes {
		if len(found[folder]) == 0 {
			t.Errorf("%s reads nothing without package foreign: take it out of decode_test.go", folder)
		}
	}
}

func TestCallsOfDoorsAreFound(t *testing.T) {
	t.Parallel()
	calls, err := callsOfDoors("x.go", []byte(`package x
import ("encoding/json"; meta "k8s.io/apimachinery/pkg/apis/meta/v1"; "time")
func f() { json.Marshal(nil); _ = json.Unmarshal(nil, nil); meta.LabelSelectorAsSelector(nil); time.Now() }`))
	if want := []string{"json.Unmarshal", "meta.LabelSelectorAsSelector"}; err != nil || !slices.Equal(calls, want) {
		t.Errorf("got %q, %v", calls, err)
	}
}

// callsOfDoors are those in a file.
func callsOfDoors(path string, text []byte) (calls []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
	if err != nil {
		return nil, err
	}
	imported := map[string][]string{} // functions by the name of the package in the file
	for _, spec := range file.Imports {
		of, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(of, "/v3")
		name = name[strings.LastIndexByte(name, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = doors[of]
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if s, ok := node.(*ast.SelectorExpr); ok {
			if of, ok := s.X.(*ast.Ident); ok && slices.Contains(imported[of.Name], s.Sel.Name) {
				calls = append(calls, of.Name+"."+s.Sel.Name)
			}
		}
		return true
	})
	return calls, nil
}
