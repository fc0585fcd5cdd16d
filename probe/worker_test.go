package probe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/refit-project/refit/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// proberFunc lets a test be the thing probed.
type proberFunc func(ctx context.Context) probe.Outcome

func (f proberFunc) Probe(ctx context.Context) probe.Outcome { return f(ctx) }

func well(context.Context, int) probe.Outcome {
	return probe.Outcome{State: probe.Succeeded, Message: "idle"}
}

// hang answers when it must.
func hang(ctx context.Context, _ int) probe.Outcome {
	<-ctx.Done()
	return probe.Outcome{State: probe.Failed, Message: "no answer in time"}
}

func timing() probe.Timing { return probe.Timing{}.WithDefaults() }

func start(t *testing.T, spec probe.Spec, report func(probe.Result)) *probe.Worker {
	t.Helper()
	w, err := probe.Start(t.Context(), spec, report)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestDefaultsAreKubernetes(t *testing.T) {
	t.Parallel()
	want := probe.Timing{Period: 10 * time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 3}
	if diff := cmp.Diff(want, timing()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	given := probe.Timing{StartDelay: 1, Period: 2, Timeout: 3, SuccessThreshold: 4, FailureThreshold: 5, Jitter: 6}
	if diff := cmp.Diff(given, given.WithDefaults()); diff != "" {
		t.Errorf("what is given is changed (-want +got):\n%s", diff)
	}
}

// Failures and the unknown are results, by thresholds; the state before holds until then.
func TestThresholds(t *testing.T) {
	t.Parallel()
	const s, f, u = probe.Succeeded, probe.Failed, probe.Unknown
	tests := map[string]struct {
		success, failure int
		answers, want    []probe.State
	}{
		"a dead server fails":              {1, 3, []probe.State{s, f, f, f, f}, []probe.State{s, s, s, f, f}},
		"a flap below the threshold":       {1, 3, []probe.State{s, f, f, s, f, f, s}, []probe.State{s, s, s, s, s, s, s}},
		"unknown until enough successes":   {2, 1, []probe.State{s, s, f, s, s}, []probe.State{u, s, f, f, s}},
		"unknown until enough failures":    {1, 2, []probe.State{f, f}, []probe.State{u, f}},
		"cannot ask: unknown, not well":    {1, 2, []probe.State{s, u, u, s}, []probe.State{s, s, u, s}},
		"failed and unknown do not add up": {1, 2, []probe.State{s, f, u, f, u, u}, []probe.State{s, s, s, s, s, u}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var got []probe.State
				d := newDiary()
				spec := probe.Spec{Timing: timing(), Prober: d.prober(func(_ context.Context, n int) probe.Outcome {
					return probe.Outcome{State: tt.answers[n-1]}
				})}
				spec.SuccessThreshold, spec.FailureThreshold = tt.success, tt.failure
				w := start(t, spec, func(r probe.Result) { got = append(got, r.State) })
				time.Sleep(time.Duration(len(tt.answers))*spec.Period - 1)
				w.Stop()
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("states (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestResultTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		spec := probe.Spec{Timing: timing(), Prober: d.prober(func(ctx context.Context, n int) probe.Outcome {
			if n == 3 {
				return hang(ctx, n)
			}
			return well(ctx, n)
		})}
		spec.FailureThreshold = 1
		began := time.Now()
		w := start(t, spec, d.report)
		if got := w.Result(); got.State != probe.Unknown || !got.ProbedAt.IsZero() {
			t.Errorf("before the first probe: %+v", got)
		}
		time.Sleep(15 * time.Second)
		want := probe.Result{State: probe.Succeeded, Message: "idle", ProbedAt: began.Add(10 * time.Second), ChangedAt: began}
		if diff := cmp.Diff(want, w.Result()); diff != "" {
			t.Errorf("after two successes (-want +got):\n%s", diff)
		}
		time.Sleep(10 * time.Second)
		want = probe.Result{
			State: probe.Failed, Message: "no answer in time",
			ProbedAt: began.Add(20 * time.Second), ChangedAt: began.Add(21 * time.Second),
		}
		if diff := cmp.Diff(want, w.Result()); diff != "" {
			t.Errorf("after a timeout (-want +got):\n%s", diff)
		}
		w.Stop()
	})
}

func TestStopWaitsAndNothingIsReportedAfterwards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		returned := false
		spec := probe.Spec{Timing: timing(), Prober: d.prober(func(ctx context.Context, _ int) probe.Outcome {
			<-ctx.Done()
			time.Sleep(300 * time.Millisecond) // slow to give up
			returned = true
			return probe.Outcome{State: probe.Failed}
		})}
		spec.Timeout = time.Hour
		w := start(t, spec, d.report)
		time.Sleep(time.Second)
		w.Stop()
		if !returned {
			t.Error("Stop returned while a probe was under way")
		}
		w.Stop()
		d.checkReports(t)
	})
}

func TestWorkerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := newDiary()
		w, err := probe.Start(ctx, probe.Spec{Prober: d.prober(well), Timing: timing()}, d.report)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		cancel()
		time.Sleep(time.Minute)
		w.Stop()
		d.checkProbes(t, 0)
	})
}

// Two probes on one container: each has its own state, period and end.
func TestWorkersAreIndependent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck, lively := newDiary(), newDiary()
		slow := probe.Spec{Prober: stuck.prober(hang), Timing: timing()}
		slow.Timeout, slow.FailureThreshold = 25*time.Second, 1
		a := start(t, slow, stuck.report)
		b := start(t, probe.Spec{Prober: lively.prober(well), Timing: timing()}, lively.report)
		time.Sleep(26 * time.Second)
		if a.Result().State != probe.Failed || b.Result().State != probe.Succeeded {
			t.Errorf("states %v and %v", a.Result(), b.Result())
		}
		a.Stop()
		time.Sleep(10 * time.Second)
		b.Stop()
		lively.checkProbes(t, 0, 10*time.Second, 20*time.Second, 30*time.Second)
	})
}

func TestInvalidSpecsAreRefused(t *testing.T) {
	t.Parallel()
	bad := probe.Spec{Timing: probe.Timing{StartDelay: -1, Jitter: -1}}
	_, err := probe.Start(t.Context(), bad, nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"start delay", "period", "timeout", "success threshold", "failure threshold", "jitter", "no prober"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}
	for period, refused := range map[time.Duration]bool{10 * time.Millisecond: false, 9 * time.Millisecond: true} {
		if err := (probe.Timing{Period: period}).WithDefaults().Validate(); (err != nil) != refused {
			t.Errorf("period %s: %v", period, err)
		}
	}
	w := start(t, probe.Spec{Prober: proberFunc(func(context.Context) probe.Outcome { return probe.Outcome{} }), Timing: timing()}, func(probe.Result) {})
	defer w.Stop()
	if err := w.Update(bad); err == nil {
		t.Error("Update took it")
	}
}

// A known state is kept until enough answers in a row differ from it.
func TestWorkerBeginsWithWhatIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		before := time.Now().Add(-time.Hour)
		spec := probe.Spec{Prober: d.prober(func(context.Context, int) probe.Outcome {
			return probe.Outcome{State: probe.Failed, Message: "busy"}
		}), Timing: timing(), Known: probe.Result{State: probe.Succeeded, Message: "idle", ChangedAt: before}}
		spec.FailureThreshold = 2
		w := start(t, spec, d.report)
		if r := w.Result(); r.State != probe.Succeeded || r.Message != "idle" || !r.ChangedAt.Equal(before) {
			t.Errorf("before the first probe: %+v", r)
		}
		time.Sleep(15 * time.Second)
		w.Stop()
		d.checkReports(t, report{0, probe.Succeeded, "idle"}, report{10 * time.Second, probe.Failed, "busy"})
	})
}

// A probe that could not run changes nothing.
func TestWorkerIgnoresWhatWasNotAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		away := probe.Exec{Execer: execFunc(func() error { return fmt.Errorf("runtime away: %w", probe.ErrNotRun) }), Command: []string{"true"}}
		spec := probe.Spec{Prober: d.prober(func(ctx context.Context, n int) probe.Outcome {
			if n == 1 {
				return probe.Outcome{State: probe.Succeeded, Message: "idle"}
			}
			return away.Probe(ctx)
		}), Timing: timing()}
		spec.FailureThreshold = 1
		w := start(t, spec, d.report)
		time.Sleep(35 * time.Second)
		w.Stop()
		d.checkReports(t, report{0, probe.Succeeded, "idle"})
	})
}

type execFunc func() error

func (f execFunc) Exec(context.Context, []string) (probe.Execution, error) {
	return probe.Execution{}, f()
}

// A probe that panics is unknown; the worker and the others go on.
func TestAPanicIsAnUnknownResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		probes := 0
		prober := proberFunc(func(context.Context) probe.Outcome {
			if probes++; probes == 1 {
				panic("broken")
			}
			return probe.Outcome{State: probe.Succeeded, Message: "idle"}
		})
		var results []probe.Result
		w := start(t, probe.Spec{Prober: prober, Timing: timing()}, func(r probe.Result) { results = append(results, r) })
		time.Sleep(11 * time.Second)
		w.Stop()
		if len(results) != 2 || results[0].State != probe.Unknown || results[1].State != probe.Succeeded {
			t.Errorf("results %+v", results)
		}
	})
}
