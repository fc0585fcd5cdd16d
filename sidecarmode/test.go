package sidecarmode

import (
	"context"
	"slices"
	"time"

	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/selftest"
)

const (
	// testInterval is the minimum time between two self-tests.
	testInterval = 5 * time.Second
	// reviewInterval is how long results of access reviews are used, and missingReviewInterval how long if a permission is missing: it may
	// be granted later, and nothing notifies us.
	reviewInterval        = 10 * time.Minute
	missingReviewInterval = 30 * time.Second

	defaultCondition = "refit.dev/SidecarSelfTest"
	off              = "off"
)

// tester repeats the self-test when the pod has changed.
type tester struct {
	sidecar *sidecar
	tokens  chan struct{} // holds one token: test again, including the role
}

func newTester(s *sidecar) *tester { return &tester{sidecar: s, tokens: make(chan struct{}, 1)} }

// retest requests another test soon.
func (t *tester) retest() {
	select {
	case t.tokens <- struct{}{}:
	default:
	}
}

// run tests at once, and after changes, until ctx ends.
func (t *tester) run(ctx context.Context) error {
	changes, end := t.sidecar.feed.changes()
	defer end()
	var access selftest.Report
	var asked time.Time
	for {
		needs := t.sidecar.manager.Needs()
		if asked.IsZero() || time.Since(asked) > reviewInterval {
			access, asked = selftest.Access(ctx, t.sidecar.api, t.access(needs)), time.Now()
		}
		t.test(ctx, needs, access)
		timer := time.NewTimer(testInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		missing := slices.ContainsFunc(access, func(c selftest.Check) bool { return !c.OK })
		var again <-chan time.Time
		if missing {
			again = time.After(missingReviewInterval - testInterval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-again:
			asked = time.Time{}
		case <-t.tokens:
			asked = time.Time{}
		}
	}
}

// access returns the permissions that the program and the plugins need.
func (t *tester) access(needs plugin.Needs) []selftest.Need {
	pod := reference(output.Pod(t.sidecar.pod), "")
	status := pod
	status.Subresource = "status"
	return append([]selftest.Need{{Verb: "get", Of: pod}, {Verb: "watch", Of: pod}, {Verb: "patch", Of: status}}, needs.Access...)
}

func (t *tester) test(ctx context.Context, needs plugin.Needs, access selftest.Report) {
	s := t.sidecar
	report := selftest.Processes(ctx, s.processes, s.feed.latest(), s.config.Container, needs.Signals)
	report = append(report, access...)
	for _, dir := range needs.Folders {
		report = append(report, selftest.Volume(dir)...)
	}
	s.state.setReport(report)
	entry := report.Entry()
	if entry.State != result.Succeeded {
		s.logger.Warn("self-test", "message", entry.Message)
	}
	if s.condition != off {
		s.writer.Put("self-test", []output.Output{output.Condition{Object: output.Pod(s.pod), Type: s.condition}}, entry)
	}
}
