package sidecarmode

import (
	"context"
	"slices"
	"time"

	"github.com/refit-project/refit/result"
	"github.com/refit-project/refit/result/output"
	"github.com/refit-project/refit/sidecarmode/plugin"
	"github.com/refit-project/refit/sidecarmode/selftest"
)

const (
	// testInterval is the least time between two self-tests.
	testInterval = 5 * time.Second
	// askAgain is how long the results of the access reviews are used, and askMissing how long where something is missing: it
	// may be granted, and nothing tells of that.
	askAgain   = 10 * time.Minute
	askMissing = 30 * time.Second

	defaultCondition = "refit.dev/SidecarSelfTest"
	off              = "off"
)

// tester repeats the self-test when the pod has changed.
type tester struct {
	sidecar *sidecar
	tokens  chan struct{} // holds one: test again, the role as well
}

func newTester(s *sidecar) *tester { return &tester{sidecar: s, tokens: make(chan struct{}, 1)} }

// again asks for another test soon.
func (t *tester) again() {
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
		if asked.IsZero() || time.Since(asked) > askAgain {
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
			again = time.After(askMissing - testInterval)
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

// access is what the program needs by itself, and what the plugins need.
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
