// Command test is `make test`: lint, generated files, unit tests with -race, conformance and end-to-end tests on a real
// cluster made for it, which it takes away again however it ends. It closes with the test runner's own lines, and what failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/refit-project/refit/hack/step"
	"github.com/refit-project/refit/hack/test/verdict"
)

func main() {
	part := flag.String("part", "", "only `PART`: check (lint, generated files, unit tests), audit (dead code, known vulnerabilities, promtool), cluster, or e2e (end-to-end tests on the version of Kubernetes in $KUBERNETES)")
	flag.Parse()
	if *part != "" && !slices.Contains(parts, *part) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *part)
	stop()
	if err != nil && !errors.Is(err, errFailed) {
		fmt.Fprintln(os.Stderr, "test:", err)
	}
	if err != nil {
		os.Exit(1)
	}
}

const partCheck, partAudit, partCluster, partE2E = "check", "audit", "cluster", "e2e"

var parts = []string{partCheck, partAudit, partCluster, partE2E}

// errFailed says that something was found, which has been printed already.
var errFailed = errors.New("failed")

// suite is one run of all that is to be checked.
type suite struct {
	root   string
	report *step.Reporter
	part   string            // one of parts, or all but partE2E if empty
	tool   map[string]string // paths of the tools of tools/go.mod
	low    bool              // programs get only what others leave of the processors
	ran    *ran
}

func run(ctx context.Context, part string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	kubernetes, err := kubernetesMinor()
	if err != nil {
		return err
	}
	s := &suite{
		root: root, report: step.New(os.Stdout, filepath.Join(root, "dist", "log")),
		part: part, tool: map[string]string{}, ran: &ran{tests: map[string]verdict.Tests{}},
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	modules, err := s.modules()
	if err != nil {
		return err
	}
	faults := s.steps(ctx, modules)
	if part != partAudit {
		faults = append(faults, verdict.Check(s.ran.tests, expected(part, kubernetes)))
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	faults = slices.DeleteFunc(faults, func(fault error) bool { return fault == nil })
	for _, fault := range faults {
		fmt.Println("\n" + fault.Error())
	}
	fmt.Printf("\n%d parts failed; their output is in dist/log\n", len(faults))
	if part == partAudit && len(faults) == 0 {
		return nil // no test was to run
	}
	// The runner's own lines come after all that passed. What failed is named again after them, since the end of a log is
	// what is read first.
	summary := s.summary(ctx)
	if len(faults) > 0 {
		fmt.Print(messages(s.ran.tests), failures(faults))
	}
	if summary != nil || len(faults) > 0 {
		return errFailed
	}
	return nil
}

// messages are the failed tests, each with the first lines that it has logged.
func messages(ran map[string]verdict.Tests) string {
	var text strings.Builder
	for _, step := range slices.Sorted(maps.Keys(ran)) {
		for _, test := range ran[step].Failed {
			fmt.Fprintf(&text, "%s\n", strings.TrimPrefix(test, modulePath+"/"))
			for _, line := range ran[step].Messages[test] {
				fmt.Fprintf(&text, "    %s\n", line)
			}
		}
	}
	return text.String()
}

// failures names what failed, each fault by the first line of its message.
func failures(faults []error) string {
	var text strings.Builder
	for _, fault := range faults {
		first, _, _ := strings.Cut(fault.Error(), "\n")
		fmt.Fprintf(&text, "FAILED: %s\n", first)
	}
	return text.String()
}

// prepare installs what is missing and finds the tools.
func (s *suite) prepare(ctx context.Context) error {
	if err := os.RemoveAll(filepath.Join(s.root, "dist", "test")); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.root, "dist", "test"), 0o755); err != nil {
		return err
	}
	err := s.report.Run(ctx, "Debian packages", step.Command{Argv: []string{"hack/packages.sh", "gcc=gcc libc6-dev", "chromium=chromium"}})
	if err != nil {
		return err
	}
	return s.report.Do("tools", func() error {
		for _, name := range []string{"golangci-lint", "actionlint", "gotestsum", "deadcode", "govulncheck"} {
			path, err := output(ctx, s.root, "go", "tool", "-n", "-modfile=tools/go.mod", name)
			if err != nil {
				return err
			}
			s.tool[name] = path
		}
		return nil
	})
}

// modules are the folders of the Go modules that are ours, the root first. Those in test/cluster/components only pin
// what other people have made.
func (s *suite) modules() ([]string, error) {
	modules := []string{"."}
	err := filepath.WalkDir(s.root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(s.root, filepath.Dir(path))
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "dist" || entry.Name() == "components"):
			if path != s.root {
				return filepath.SkipDir
			}
		case entry.Name() == "go.mod" && folder != "." && !strings.HasPrefix(folder, "tools"):
			modules = append(modules, folder)
		}
		return nil
	})
	return modules, err
}

func (s *suite) lint(ctx context.Context, modules []string) error {
	var faults []error
	for _, module := range modules {
		faults = append(faults, s.report.Run(ctx, "lint "+named(module), step.Command{
			Dir:  filepath.Join(s.root, module),
			Argv: []string{s.tool["golangci-lint"], "run", "--allow-parallel-runners", "--config", filepath.Join(s.root, ".golangci.yml"), "./..."}, Low: s.low,
		}))
	}
	faults = append(faults, s.report.Run(ctx, "lint of .github/workflows", step.Command{Dir: s.root, Argv: []string{s.tool["actionlint"], "-shellcheck=", "-pyflakes="}}))
	return errors.Join(faults...)
}

func named(module string) string {
	if module == "." {
		return "root"
	}
	return module
}

// generated generates the files again and compares them. The files in the checkout are restored.
func (s *suite) generated(ctx context.Context) error {
	return s.report.Do("generated files are up to date", func() error {
		before, err := s.generatedFiles()
		if err != nil {
			return err
		}
		if _, err := output(ctx, s.root, "tools/generate.sh"); err != nil {
			return err
		}
		after, err := s.generatedFiles()
		if err != nil {
			return err
		}
		var stale []string
		for path, content := range after {
			if before[path] == content {
				continue
			}
			stale = append(stale, path)
			if err := os.WriteFile(filepath.Join(s.root, path), []byte(before[path]), 0o644); err != nil {
				return err
			}
		}
		if len(stale) > 0 {
			return fmt.Errorf("%s: not what api/ and deploy/chart give: make generate", strings.Join(stale, ", "))
		}
		return nil
	})
}

func (s *suite) generatedFiles() (map[string]string, error) {
	files := map[string]string{}
	for _, pattern := range []string{"api/*/zz_generated.*.go", "deploy/*.yaml", "deploy/*/*.yaml", "deploy/chart/README.md", "docs/reference/api-*.md"} {
		paths, err := filepath.Glob(filepath.Join(s.root, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			relative, err := filepath.Rel(s.root, path)
			if err != nil {
				return nil, err
			}
			files[relative] = string(content)
		}
	}
	return files, nil
}

const (
	unitTimeout = 15 * time.Minute
	e2eTimeout  = 62 * time.Minute
)
