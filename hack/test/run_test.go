package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/refit-project/refit/hack/test/verdict"
)

// TestOutputLeavesOutStderr: with an empty module cache go speaks of downloads before it answers.
func TestOutputLeavesOutStderr(t *testing.T) {
	t.Parallel()
	got, err := output(t.Context(), t.TempDir(), "sh", "-c", "echo 'go: downloading example.com' >&2; echo /path/of/tool")
	if err != nil || got != "/path/of/tool" {
		t.Errorf("got %q, %v, want the path alone", got, err)
	}
	_, err = output(t.Context(), t.TempDir(), "sh", "-c", "echo 'no such module' >&2; exit 1")
	if err == nil || !strings.Contains(err.Error(), "no such module") {
		t.Errorf("got %v, want what the command said", err)
	}
}

// TestFailuresAreNamedWithoutTheirOutput: a required test that did not run fails no test, so the runner's last lines say
// nothing of it.
func TestFailuresAreNamedWithoutTheirOutput(t *testing.T) {
	t.Parallel()
	got := failures([]error{errors.New("lint root: exit status 1\na.go:1: unused"), errors.New("chart on the cluster: no test ran")})
	if want := "FAILED: lint root: exit status 1\nFAILED: chart on the cluster: no test ran\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFailedTestsAreNamedWithTheirMessages: the output of a failed test may be thousands of lines before the end.
func TestFailedTestsAreNamedWithTheirMessages(t *testing.T) {
	t.Parallel()
	failed := modulePath + "/test/chaos.TestSmallDose"
	got := messages(map[string]verdict.Tests{
		"unit":  {Passed: []string{"p.TestA"}},
		"chaos": {Failed: []string{failed}, Messages: map[string][]string{failed: {"chaos_test.go:51: I4: pod web"}}},
	})
	if want := "test/chaos.TestSmallDose\n    chaos_test.go:51: I4: pod web\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSplitLosesNoPackage: a package that is in no list would not be tested, and nobody would notice.
func TestSplitLosesNoPackage(t *testing.T) {
	t.Parallel()
	var all []string
	for _, folder := range []string{"/crr", "/deploy", "/deploy/crd", "/docs", "/docs/sidecar-plugin", "/inplace", "/inplace/cli", "/rollout", "/rollout/workload", "/test/e2e", "/test/e2e/testapp"} {
		all = append(all, modulePath+folder)
	}
	raced, files, long := split(all)
	if want := []string{all[0], all[4], all[6], all[10]}; !slices.Equal(raced, want) {
		t.Errorf("with -race %q, want %q", raced, want)
	}
	if want := all[1:4]; !slices.Equal(files, want) {
		t.Errorf("of files %q, want %q", files, want)
	}
	if want := []string{all[5], all[7], all[8]}; !slices.Equal(long, want) {
		t.Errorf("simulations of %q, want %q", long, want)
	}
}

func TestEachModuleIsTestedOnce(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := (&suite{root: root}).modules()
	if err != nil {
		t.Fatal(err)
	}
	now, later := byTime(modules)
	if len(later) != len(timeless) {
		t.Errorf("tests of %q run beside the cluster, want %q", later, timeless)
	}
	tested := slices.Sorted(slices.Values(slices.Concat(now, later)))
	if want := slices.Sorted(slices.Values(modules)); !slices.Equal(tested, want) {
		t.Errorf("tests of %q, want of %q", tested, want)
	}
}

// TestStepsBesideTheClusterHaveALowerPriority: otherwise they would delay what the tests on the cluster measure.
func TestStepsBesideTheClusterHaveALowerPriority(t *testing.T) {
	t.Parallel()
	niceness := func(s *suite) int {
		text, err := output(t.Context(), t.TempDir(), s.argv("nice")...)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	s := &suite{}
	if usual, low := niceness(s), niceness(s.lowPriority()); low != 19 {
		t.Errorf("niceness %d, usually %d, want 19", low, usual)
	}
}

// TestNoGoroutinesWhereTheRaceDetectorSeesLess looks at the packages that are tested without it, or with less of it.
func TestNoGoroutinesWhereTheRaceDetectorSeesLess(t *testing.T) {
	t.Parallel()
	for _, folder := range slices.Concat(ofFiles, simulated) {
		files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("files of %s: %q, %v", folder, files, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, imported := range file.Imports {
				if path := strings.Trim(imported.Path.Value, `"`); path == "sync" || path == "sync/atomic" {
					t.Errorf("%s imports %s", name, path)
				}
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if _, found := node.(*ast.GoStmt); found {
					t.Errorf("%s starts a goroutine", name)
				}
				return true
			})
		}
	}
}
