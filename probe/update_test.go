package probe_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/probe"
)

// A changed spec, the period too, takes effect without a new worker.
func TestUpdate(t *testing.T) {
	t.Parallel()
	sec := func(n ...float64) (all []time.Duration) {
		for _, x := range n {
			all = append(all, time.Duration(x*float64(time.Second)))
		}
		return all
	}
	tests := map[string]struct {
		change func(*probe.Spec) // 12.5 s after the start
		want   []time.Duration   // within 30 s
	}{
		"shorter period":             {func(s *probe.Spec) { s.Period = 4 * time.Second }, sec(0, 10, 14, 18, 22, 26)},
		"period already over":        {func(s *probe.Spec) { s.Period = 2 * time.Second }, sec(0, 10, 12.5, 14.5, 16.5, 18.5, 20.5, 22.5, 24.5, 26.5, 28.5)},
		"longer period":              {func(s *probe.Spec) { s.Period = 15 * time.Second }, sec(0, 10, 25)},
		"the same again":             {func(*probe.Spec) {}, sec(0, 10, 20)},
		"start delay is past":        {func(s *probe.Spec) { s.StartDelay = time.Hour }, sec(0, 10, 20)},
		"restarted, with its delay":  {func(s *probe.Spec) { s.StartDelay, s.Since = 3*time.Second, time.Now() }, sec(0, 10, 15.5, 25.5)},
		"restarted, without a delay": {func(s *probe.Spec) { s.Since = time.Now() }, sec(0, 10, 12.5, 22.5)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDiary()
				spec := probe.Spec{Prober: d.prober(well), Timing: timing()}
				w := start(t, spec, d.report)
				time.Sleep(12500 * time.Millisecond)
				tt.change(&spec)
				if err := w.Update(spec); err != nil {
					t.Fatal(err)
				}
				time.Sleep(17*time.Second + 400*time.Millisecond)
				w.Stop()
				d.checkProbes(t, tt.want...)
			})
		})
	}
}

func TestUpdateBeforeTheFirstProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		spec := probe.Spec{Prober: d.prober(well), Timing: timing()}
		spec.StartDelay = 20 * time.Second
		w := start(t, spec, d.report)
		time.Sleep(time.Second)
		spec.StartDelay = 5 * time.Second
		if err := w.Update(spec); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		w.Stop()
		d.checkProbes(t, 5*time.Second)
	})
}

// A restarted container is another: nothing of the old one counts, not even the probe under way.
// The state of a container that was restarted is unknown since then, whatever was known when the Worker began.
func TestUpdateOfSinceIsAChangeOfTheState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		spec := probe.Spec{Timing: timing(), Prober: proberFunc(func(ctx context.Context) probe.Outcome { return well(ctx, 1) })}
		spec.StartDelay, spec.Known = time.Hour, probe.Result{State: probe.Failed, Message: "was down", ChangedAt: began.Add(-time.Hour)}
		w := start(t, spec, func(probe.Result) {})
		time.Sleep(10 * time.Second)
		spec.Since = time.Now()
		if err := w.Update(spec); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff(probe.Result{State: probe.Unknown, ChangedAt: began.Add(10 * time.Second)}, w.Result()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.Stop()
	})
}

func TestUpdateOfSinceForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		spec := probe.Spec{Timing: timing(), Prober: d.prober(func(ctx context.Context, n int) probe.Outcome {
			if n == 2 {
				return hang(ctx, n)
			}
			return well(ctx, n)
		})}
		spec.Timeout, spec.SuccessThreshold, spec.FailureThreshold = time.Hour, 1, 1
		w := start(t, spec, d.report)
		time.Sleep(11 * time.Second)
		spec.Since = time.Now()
		spec.StartDelay = 2 * time.Second
		if err := w.Update(spec); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		w.Stop()
		d.checkReports(t, report{0, probe.Succeeded, "idle"}, report{11 * time.Second, probe.Unknown, ""},
			report{13 * time.Second, probe.Succeeded, "idle"})
	})
}

// Otherwise a container that has just been restarted would be called ready because of the previous instance.
func TestAnswersOfTheContainerBeforeDoNotCountForTheThreshold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		spec := probe.Spec{Timing: timing(), Prober: d.prober(well)}
		spec.SuccessThreshold = 2
		w := start(t, spec, d.report)
		time.Sleep(5 * time.Second)
		spec.Since = time.Now()
		if err := w.Update(spec); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		w.Stop()
		d.checkReports(t, report{0, probe.Unknown, ""}, report{5 * time.Second, probe.Unknown, ""},
			report{5 * time.Second, probe.Unknown, ""}, report{15 * time.Second, probe.Succeeded, "idle"})
	})
}

// Updates that come faster than probes end must not keep them from ending.
func TestUpdatesDoNotStarveTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		spec := probe.Spec{Timing: timing(), Prober: d.prober(func(ctx context.Context, n int) probe.Outcome {
			time.Sleep(500 * time.Millisecond)
			return well(ctx, n)
		})}
		w := start(t, spec, d.report)
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			if err := w.Update(spec); err != nil {
				t.Fatal(err)
			}
		}
		w.Stop()
		d.checkReports(t, report{500 * time.Millisecond, probe.Succeeded, "idle"})
	})
}
