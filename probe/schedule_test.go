package probe_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/probe"
)

func TestWorkerProbesAtItsTimes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*probe.Spec)
		answer func(context.Context, int) probe.Outcome
		want   []time.Duration // within 34 s
	}{
		"every period from the start": {want: []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}},
		"start delay": {
			change: func(s *probe.Spec) { s.StartDelay = 15 * time.Second },
			want:   []time.Duration{15 * time.Second, 25 * time.Second},
		},
		"start delay counts from Since": {
			change: func(s *probe.Spec) { s.StartDelay, s.Since = 15*time.Second, time.Now().Add(-10*time.Second) },
			want:   []time.Duration{5 * time.Second, 15 * time.Second, 25 * time.Second},
		},
		"start delay long over": {
			change: func(s *probe.Spec) { s.StartDelay, s.Since = 15*time.Second, time.Now().Add(-time.Hour) },
			want:   []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second},
		},
		"probes longer than the period do not overlap": {
			change: func(s *probe.Spec) { s.Timeout = 16 * time.Second },
			answer: hang,
			want:   []time.Duration{0, 16 * time.Second, 32 * time.Second},
		},
		"the timeout is the configured one": {
			change: func(s *probe.Spec) { s.Timeout, s.Period = 12*time.Second, 11*time.Second },
			answer: hang,
			want:   []time.Duration{0, 12 * time.Second, 24 * time.Second},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDiary()
				answer := tt.answer
				if answer == nil {
					answer = well
				}
				spec := probe.Spec{Prober: d.prober(answer), Timing: timing()}
				if tt.change != nil {
					tt.change(&spec)
				}
				w := start(t, spec, d.report)
				time.Sleep(34 * time.Second)
				w.Stop()
				d.checkProbes(t, tt.want...)
			})
		})
	}
}

func TestJitterSpreadsTheFirstProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 20 {
			d := newDiary()
			spec := probe.Spec{Prober: d.prober(well), Timing: timing()}
			spec.Jitter = 5 * time.Second
			w := start(t, spec, d.report)
			time.Sleep(14 * time.Second)
			w.Stop()
			first := d.probes[0]
			seen[first] = true
			if first >= 5*time.Second {
				t.Errorf("first probe after %s", first)
			}
			if len(d.probes) > 1 && d.probes[1]-first != 10*time.Second {
				t.Errorf("second probe %s after the first", d.probes[1]-first)
			}
		}
		if len(seen) < 10 {
			t.Errorf("20 workers started at %d different times", len(seen))
		}
	})
}

// Workers that were started at different times ask together.
func TestAlignedWorkersAskTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		spec := probe.Spec{Prober: d.prober(well), Timing: timing()}
		slow := 50 * time.Millisecond
		spec.Align = func(due time.Time) time.Duration { return due.Add(slow - 1).Truncate(slow).Sub(due) }
		spec.Period = 10 * time.Second
		time.Sleep(time.Millisecond)
		first := start(t, spec, d.report)
		time.Sleep(20 * time.Millisecond)
		second := start(t, spec, d.report)
		time.Sleep(25 * time.Second)
		first.Stop()
		second.Stop()
		d.checkProbes(t, time.Millisecond, 21*time.Millisecond, 10*time.Second+slow, 10*time.Second+slow, 20*time.Second+slow, 20*time.Second+slow)
	})
}

// The timeout counts from when the probe may run, and probes that have to wait run less often instead of piling up.
func TestAProbeWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs, admitted, done int
		var late []time.Duration
		spec := probe.Spec{
			Prober: proberFunc(func(ctx context.Context) probe.Outcome {
				runs++
				deadline, _ := ctx.Deadline()
				if left := time.Until(deadline); left != time.Second {
					t.Errorf("%s left of its timeout", left)
				}
				return probe.Outcome{State: probe.Succeeded}
			}),
			Timing: probe.Timing{Period: time.Second}.WithDefaults(),
			Admit: func(ctx context.Context) (func(), error) {
				admitted++
				timer := time.NewTimer(3 * time.Second)
				defer timer.Stop()
				select {
				case <-timer.C:
					return func() { done++ }, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
		}
		worker, err := probe.Start(t.Context(), spec, func(r probe.Result) { late = append(late, r.Late) })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if runs != 10 || done != 10 || worker.Result().State != probe.Succeeded {
			t.Errorf("%d runs, %d ended, in 31 s; last result %v", runs, done, worker.Result())
		}
		if late[0] != 3*time.Second || late[9] != 3*time.Second {
			t.Errorf("late by %v", late)
		}
		spec.Since = time.Now() // another container, while the probe waits
		if err := worker.Update(spec); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if admitted != 12 || runs != 10 {
			t.Errorf("admitted %d times, %d runs", admitted, runs)
		}
		time.Sleep(time.Second)
		worker.Stop() // while it waits
		if runs != 10 || done != 10 {
			t.Errorf("%d runs, %d ended", runs, done)
		}
	})
}
