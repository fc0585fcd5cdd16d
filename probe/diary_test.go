package probe_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/probe"
)

// diary records when probes started and what was reported, in time since its start.
type diary struct {
	mu      sync.Mutex
	start   time.Time
	probes  []time.Duration
	reports []report
}

type report struct {
	At      time.Duration
	State   probe.State
	Message string
}

func newDiary() *diary { return &diary{start: time.Now()} }

func (d *diary) prober(answer func(ctx context.Context, n int) probe.Outcome) probe.Prober {
	n := 0
	return proberFunc(func(ctx context.Context) probe.Outcome {
		d.mu.Lock()
		d.probes = append(d.probes, time.Since(d.start))
		n++
		m := n
		d.mu.Unlock()
		return answer(ctx, m)
	})
}

func (d *diary) report(r probe.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reports = append(d.reports, report{time.Since(d.start), r.State, r.Message})
}

func (d *diary) checkProbes(t *testing.T, want ...time.Duration) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(want, d.probes); diff != "" {
		t.Errorf("probes (-want +got):\n%s", diff)
	}
}

func (d *diary) checkReports(t *testing.T, want ...report) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(want, d.reports); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}
