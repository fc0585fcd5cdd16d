package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/hack/step"
	"github.com/refit-project/refit/hack/test/verdict"
)

const modulePath = "github.com/refit-project/refit"

// endToEnd is the folder of the tests that need a cluster, and all of it.
const endToEnd = "/test/e2e"

// downTimeout is for taking the cluster away after an interrupt, when our own context is over.
const downTimeout = 3 * time.Minute

// raceOptions shortens the second that the race detector waits before a program ends, for races in goroutines that still
// run. Tests wait for their goroutines, and there are more than 150 packages.
const raceOptions = "GORACE=atexit_sleep_ms=20"

// The race detector makes tests five times as slow. It has nothing to find in tests of files and of what renders them, and little in packages
// of decisions, functions of values without goroutines: their long simulations run in full without it, and with -short, which
// simulates less, with it.
var (
	ofFiles   = []string{"/deploy", "/deploy/crd", "/docs"}
	rendering = []string{"hack/chart", "hack/monitoring"}
	simulated = []string{"/inplace", "/rollout", "/rollout/workload"}
)

// unit runs the tests of modules that need no cluster. Those that need one skip themselves.
func (s *suite) unit(ctx context.Context, modules []string) error {
	var faults []error
	for _, module := range modules {
		dir := filepath.Join(s.root, module)
		list, err := output(ctx, dir, "go", "list", "./...")
		if err != nil {
			faults = append(faults, err)
			continue
		}
		// On the machine of a developer, unchanged tests of the root module may be answered from the cache; CI runs all. The tests of
		// other modules read files outside of their module, whose changes the cache does not see.
		anew := module != "." || os.Getenv("CI") != ""
		packages := strings.Fields(list)
		if slices.Contains(rendering, module) {
			faults = append(faults, s.unitTests(ctx, "unit tests of "+named(module), dir, anew, packages))
			continue
		}
		if module == "." {
			raced, files, long := split(packages)
			packages = raced
			faults = append(faults, s.unitTests(ctx, withoutRace, dir, anew, append(files, long...)),
				s.unitTests(ctx, shortSimulations, dir, anew, append([]string{"-race", "-short"}, long...)))
		}
		faults = append(faults, s.unitTests(ctx, "unit tests of "+named(module), dir, anew, append([]string{"-race"}, packages...)))
	}
	return errors.Join(faults...)
}

// split sorts the packages of the root module that need no cluster.
func split(packages []string) (raced, files, long []string) {
	for _, name := range packages {
		switch folder := strings.TrimPrefix(name, modulePath); {
		case slices.Contains(ofFiles, folder):
			files = append(files, name)
		case slices.Contains(simulated, folder):
			long = append(long, name)
		case folder != endToEnd:
			raced = append(raced, name)
		}
	}
	return raced, files, long
}

func (s *suite) unitTests(ctx context.Context, name, dir string, anew bool, args []string) error {
	// More tests of a package run at once than there are cores, since many of them wait for something.
	limit := unitTimeout
	if s.low { // beside the tests on the cluster, which may leave it nearly nothing until they end
		limit = e2eTimeout
	}
	flags := []string{"-parallel=4", "-timeout=" + limit.String()}
	if anew {
		flags = append(flags, "-count=1")
	}
	return s.goTest(ctx, name, dir, []string{raceOptions}, append(flags, args...)...)
}

// onCluster makes a cluster, tests on it and takes it away.
func (s *suite) onCluster(ctx context.Context, tests func(context.Context) error) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	down := step.Command{Argv: []string{"test/cluster/cluster.sh", "down"}}
	if err := s.report.Run(ctx, "cluster down, should there be one", down); err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
		defer cancel()
		err = errors.Join(err, s.report.Run(last, "cluster down", down))
	}()
	err = s.report.Run(ctx, "cluster up, two nodes",
		step.Command{Argv: []string{"test/cluster/cluster.sh", "up"}, Env: []string{"NODES=2"}, Echo: true})
	if err != nil {
		return err
	}
	return tests(ctx)
}

// everything that needs a cluster.
func (s *suite) everything(ctx context.Context) error {
	conformance := s.conformance(ctx)
	if err := s.images(ctx); err != nil {
		return errors.Join(conformance, err)
	}
	// First, as it needs a cluster without Refit, and leaves one.
	chart := s.goTest(ctx, chartStep, s.root, []string{"REFIT_CHART=1", s.kubeconfig()},
		"-count=1", "-timeout="+e2eTimeout.String(), "./test/chart")
	end2end := s.endToEndTests(ctx)
	chaos := s.goTest(ctx, chaosStep, s.root, []string{"REFIT_CHAOS=1", s.kubeconfig()},
		"-count=1", "-run=TestSmallDose", "-timeout="+e2eTimeout.String(), "./test/chaos")
	return errors.Join(conformance, chart, end2end, chaos)
}

// endToEnd are the end-to-end tests alone.
func (s *suite) endToEnd(ctx context.Context) error {
	if err := s.images(ctx); err != nil {
		return err
	}
	return s.endToEndTests(ctx)
}

func (s *suite) images(ctx context.Context) error {
	return s.report.Run(ctx, "images", step.Command{Argv: []string{"hack/images.sh", "--tests"}})
}

func (s *suite) endToEndTests(ctx context.Context) error {
	return s.goTest(ctx, endToEndStep, s.root, []string{"REFIT_E2E=1", "REFIT_HOSTILE=short", s.kubeconfig()},
		"-count=1", "-parallel=6", "-timeout="+e2eTimeout.String(), "."+endToEnd)
}

func (s *suite) kubeconfig() string { return "KUBECONFIG=" + s.cluster("kubeconfig") }

// conformance runs the suite of package cri on a node's containerd, without its kubelet, which takes pods that it has not
// made for remains of old ones and removes them.
func (s *suite) conformance(ctx context.Context) error {
	const node = "node-1"
	tool := s.cluster("bin", "cluster")
	if _, err := output(ctx, s.root, tool, "stop", "kubelet", node); err != nil {
		return err
	}
	fault := s.goTest(ctx, conformanceStep, s.root, []string{
		"REFIT_CRI_SOCKET=" + s.cluster("nodes", node, "containerd.sock"),
		"REFIT_CRI_RESTART=" + tool + " restart containerd " + node,
	}, "-count=1", "-run=TestRealRuntime$", "./cri")
	// In the node's network, where containerd reaches the loopback interface that the test's registry listens on.
	fault = errors.Join(fault, s.goTest(ctx, pullStep, s.root, []string{
		"REFIT_PULL_SOCKET=" + s.cluster("nodes", node, "containerd.sock"), "REFIT_PULL_HOSTS=" + s.cluster("nodes", node, "registry"),
	}, "-count=1", "-run=TestRealRuntimePulls$", "-exec="+s.cluster("enter"), "./cri"))
	_, err := output(ctx, s.root, tool, "start", "kubelet", node)
	return errors.Join(fault, err)
}

func (s *suite) cluster(elem ...string) string {
	return filepath.Join(append([]string{s.root, ".cluster"}, elem...)...)
}

// goTest runs go test under the runner, which keeps what it says for the summary. Lint runs vet. Without symbol tables, which stack
// traces do not need, a test is linked in two thirds of the time.
func (s *suite) goTest(ctx context.Context, name, dir string, env []string, args ...string) error {
	events := filepath.Join(s.root, "dist", "test", strings.NewReplacer("/", "-", " ", "-").Replace(name)+".json")
	argv := []string{s.tool["gotestsum"], "--format=pkgname-and-test-fails", "--format-hide-empty-pkg", "--hide-summary=all", "--jsonfile=" + events, "--", "-vet=off", "-ldflags=-s"}
	fault := s.report.Run(ctx, name, step.Command{Dir: dir, Env: env, Argv: append(argv, args...), Echo: true, Low: s.low})
	return errors.Join(fault, s.count(name, events))
}

// count keeps what a step's tests did for the verdict.
func (s *suite) count(name, events string) error {
	file, err := os.Open(events)
	if errors.Is(err, fs.ErrNotExist) {
		s.ran.add(name, verdict.Tests{})
		return nil
	}
	if err != nil {
		return fmt.Errorf("count tests: %w", err)
	}
	tests, err := verdict.Read(file)
	s.ran.add(name, tests)
	s.report.Say("%s: %s", name, tests)
	return errors.Join(err, file.Close())
}

// summary lets the runner count all the runs together.
func (s *suite) summary(ctx context.Context) error {
	events, err := filepath.Glob(filepath.Join(s.root, "dist", "test", "*.json"))
	if err != nil || len(events) == 0 {
		return errors.Join(err, errors.New("no tests were run"))
	}
	argv := append([]string{"--format=none", "--raw-command", "--", "cat"}, events...)
	runner := exec.CommandContext(ctx, s.tool["gotestsum"], argv...)
	runner.Stdout, runner.Stderr = os.Stdout, os.Stdout
	if err := runner.Run(); err != nil {
		return fmt.Errorf("tests failed: %w", err)
	}
	return nil
}

// output of a short command.
func output(ctx context.Context, dir string, argv ...string) (string, error) {
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Dir = dir
	command.WaitDelay = time.Second
	// What go has to say while it downloads modules is not part of its answer.
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", strings.Join(argv, " "), err, out, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}
