// Command mutation changes the code of the packages that decide, one small change at a time, and reports the changes that no
// test of the package notices: an inverted condition, half of a condition, a boundary moved by one, a statement left out, an error lost.
//
// All changes of a package are compiled into one test binary and switched by an environment variable, so that a change
// costs one run of the tests and no build.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// packages are the packages that decide, each with all packages below it.
var packages = []string{
	"crr", "crr/admission", "crr/engine", "crr/jobend", "crr/lifecycle", "crr/podrules", "crr/queue", "crr/record", "crr/requester", "internal/kubelet", "internal/wording", "internal/hook", "image", "image/entry", "image/jobplan", "image/queue", "signal", "signal/procfile",
	"probe/podprobe", "probe/podprobe/share", "probe", "probe/transport", "probe/turns",
	"hotupdate", "hotupdate/action", "hotupdate/archive", "hotupdate/fetch", "hotupdate/manifest", "hotupdate/payload", "hotupdate/store",
	"inplace", "inplace/gate", "inplace/record", "inplace/plan", "inplace/reported", "rollout", "rollout/workload", "rollout/budget", "rollout/turn", "rollout/configchange", "rollout/schedule", "crr/inpod",
	"sidecarmode", "plugin/config", "probe/endpoint", "probe/inpod/httpprobe", "plugin", "probe/inpod", "internal/process", "plugin/selftest", "sidecarmode/server",
	"hotupdate/inpod", "hotupdate/inpod/download", "hotupdate/inpod/httpapi", "hotupdate/inpod/metrics", "hotupdate/inpod/record", "hotupdate/inpod/steps", "hotupdate/inpod/trigger",
	"crr/control", "internal/conflict", "internal/prepull", "rollout/control", "rollout/control/configchange", "rollout/control/deleted", "rollout/control/workload", "image/control", "image/control/nodewrite", "image/control/secretcopy", "internal/result", "internal/result/output", "probe/control", "probe/control/compiled", "probe/webhook", "probe/control/marks", "sidecarset/control", "sidecarset/control/beside", "crr/node", "crr/node/report",
	"probe/node", "probe/node/execprobe", "probe/node/probespec", "probe/node/probestatus",
	"sidecarset/admission", "sidecarset/annotation", "sidecarset/choice", "sidecarset/defaults", "sidecarset/expression", "sidecarset/hotupgrade", "sidecarset/inject", "sidecarset/match", "sidecarset/missed",
	"sidecarset/podfields", "sidecarset/podmeta", "sidecarset/podrules", "sidecarset/policy", "sidecarset/proof", "sidecarset/revision", "sidecarset/rollout", "sidecarset/status", "sidecarset/subset", "sidecarset/upgrade", "internal/cache/trim", "internal/guard", "internal/guard/control", "internal/guard/informer", "cli/openkruise", "cli/bundle", "cli/dashboard", "internal/fair", "internal/fair/control", "internal/freememory",
	"hotupdate/cli", "image/cli", "image/cli/pullnodes", "image/credentialprovider", "image/node", "inplace/cli", "inplace/cli/change", "inplace/cli/turn", "inplace/node", "probe/cli", "rollout/cli", "rollout/cli/board", "rollout/cli/follow", "rollout/cli/policy", "sidecarset/control/history", "sidecarset/control/prepull", "sidecarset/control/report",
}

// testsElsewhere has, for packages that were split off another package, that package, whose tests look at them too.
var testsElsewhere = map[string]string{
	"hotupdate/action": "hotupdate", "hotupdate/archive": "hotupdate", "hotupdate/fetch": "hotupdate", "hotupdate/payload": "hotupdate", "hotupdate/store": "hotupdate",
	"probe/node/execprobe": "probe/node", "probe/node/probespec": "probe/node", "probe/node/probestatus": "probe/node",
	"probe/control/compiled": "probe/control", "probe/control/marks": "probe/control",
	"image/control/nodewrite": "image/control", "image/control/secretcopy": "image/control", "probe/podprobe/share": "probe/podprobe", "crr/podrules": "crr", "hotupdate/manifest": "hotupdate", "inplace/gate": "inplace",
	"internal/prepull": "sidecarset/control/prepull", "sidecarset/control/beside": "sidecarset/control", "probe/transport": "probe", "sidecarset/podrules": "sidecarset/admission",
	"rollout/cli/follow":       "rollout/cli",
	"hotupdate/inpod/download": "hotupdate/inpod", "hotupdate/inpod/httpapi": "hotupdate/inpod", "hotupdate/inpod/metrics": "hotupdate/inpod", "hotupdate/inpod/record": "hotupdate/inpod", "hotupdate/inpod/steps": "hotupdate/inpod", "hotupdate/inpod/trigger": "hotupdate/inpod", "probe/endpoint": "probe/inpod/httpprobe",
}

// equivalent lists the mutants that change nothing that could be noticed: key, tab, reason.
//
//go:embed equivalent.txt
var equivalent string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var c check
	flag.Float64Var(&c.least, "least", 0.85, "share of the mutants of each package that has to be noticed")
	flag.IntVar(&c.workers, "workers", 4, "mutants tried at once")
	flag.IntVar(&c.every, "every", 1, "try only every nth mutant")
	flag.StringVar(&c.only, "match", "", "try only mutants whose key contains this")
	flag.StringVar(&c.kinds, "kinds", "", "try only mutants of these kinds, such as \"never,left only\"")
	flag.Parse()
	paths := flag.Args()
	if len(paths) == 0 {
		paths = packages
	}
	err := c.check(ctx, paths)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// check is what is asked for on the command line.
type check struct {
	least          float64
	workers, every int
	only, kinds    string
}

func (c check) check(ctx context.Context, paths []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "refit-mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // the system cleans up the rest
	reasons := reasonsIn(equivalent)
	var below []string
	for _, path := range paths {
		share, err := c.one(ctx, root, path, work, reasons)
		if err != nil {
			return err
		}
		if share < c.least {
			below = append(below, path)
		}
	}
	if len(below) > 0 {
		return fmt.Errorf("less than %.0f %% of the mutants are noticed in %s", 100*c.least, strings.Join(below, ", "))
	}
	return nil
}

// one prints a line for a package and one for each survivor, and returns the share that was noticed.
func (c check) one(ctx context.Context, root, path, work string, reasons map[string]string) (float64, error) {
	r, err := build(ctx, root, path, work)
	if err != nil {
		return 0, err
	}
	if err := r.baseline(ctx, root); err != nil {
		return 0, err
	}
	var tried []mutant
	same := 0
	for _, m := range r.mutants {
		switch {
		case reasons[m.key()] != "":
			same++
		case c.kinds != "" && !slices.Contains(strings.Split(c.kinds, ","), m.kind):
		case m.number%c.every == 0 && strings.Contains(m.key(), c.only):
			tried = append(tried, m)
		}
	}
	found, late, err := r.survivors(ctx, root, tried, c.workers)
	if err != nil {
		return 0, err
	}
	share := 1.0
	if len(tried) > 0 {
		share = float64(len(tried)-len(found)) / float64(len(tried))
	}
	fmt.Printf("%-24s %4d of %4d noticed: %5.1f %% (%d of them by the time limit, %d mean the same)\n", path, len(tried)-len(found), len(tried), 100*share, late, same)
	for _, m := range found {
		fmt.Printf("    %s:%d: %s: %s: %.120s\n", m.file, m.line, m.in, m.kind, m.text)
	}
	return share, nil
}

func reasonsIn(list string) map[string]string {
	reasons := map[string]string{}
	for line := range strings.Lines(list) {
		if key, reason, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(line, "#") {
			reasons[key] = reason
		}
	}
	return reasons
}
