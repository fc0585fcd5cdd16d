package main

import (
	"context"
	"slices"
	"sync"

	"github.com/refit-project/refit/hack/step"
	"github.com/refit-project/refit/hack/test/verdict"
)

// steps runs the steps of the part and returns their errors, nil for those that pass.
func (s *suite) steps(ctx context.Context, modules []string) []error {
	switch s.part {
	case partCheck:
		return []error{s.lint(ctx, modules), s.generated(ctx), s.site(ctx), s.unit(ctx, modules)}
	case partAudit:
		return s.audit(ctx)
	case partCluster:
		return []error{s.onCluster(ctx, s.everything)}
	case partE2E:
		return []error{s.onCluster(ctx, s.endToEnd)}
	}
	// What rewrites files, and tests that measure times, run before.
	now, later := byTime(modules)
	faults := []error{s.generated(ctx), s.site(ctx), s.unit(ctx, now)}
	var beside []error
	var work sync.WaitGroup
	work.Go(func() { beside = s.lowPriority().beside(ctx, modules, later) })
	faults = append(faults, s.onCluster(ctx, s.everything))
	work.Wait()
	return append(faults, beside...)
}

func (s *suite) audit(ctx context.Context) []error {
	return []error{s.deadCode(ctx), s.vulnerabilities(ctx), s.rules(ctx)}
}

// beside are the steps that need processors only. They run while the tests on the cluster wait, as they do for half of their time.
func (s *suite) beside(ctx context.Context, modules, later []string) []error {
	return append([]error{s.lint(ctx, modules), s.unit(ctx, later)}, s.audit(ctx)...)
}

// timeless are modules whose tests depend on no time, and on nothing that the tests on the cluster change.
var timeless = []string{"hack/chart", "hack/monitoring", "hack/release", "test/virtualnode"}

// byTime returns the modules whose tests run before those on the cluster, and those whose tests run beside them.
func byTime(modules []string) (now, later []string) {
	for _, module := range modules {
		if slices.Contains(timeless, module) {
			later = append(later, module)
		} else {
			now = append(now, module)
		}
	}
	return now, later
}

// lowPriority returns the same suite, whose programs get little of a processor that others need.
func (s *suite) lowPriority() *suite {
	low := *s
	low.low = true
	return &low
}

// argv is a command with the priority of the suite that is no step of its own.
func (s *suite) argv(command ...string) []string {
	if !s.low {
		return command
	}
	return append([]string{"setsid"}, step.LowPriority(command...)...)
}

// ran is what the steps' tests did. Steps run side by side.
type ran struct {
	mu    sync.Mutex
	tests map[string]verdict.Tests
}

func (r *ran) add(step string, tests verdict.Tests) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tests[step] = tests
}
