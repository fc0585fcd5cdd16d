package verdict

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/test/bench/crr/meter"
	"github.com/refit-project/refit/test/bench/report"
)

func milliseconds(all ...int) []time.Duration {
	durations := make([]time.Duration, len(all))
	for i, n := range all {
		durations[i] = time.Duration(n) * time.Millisecond
	}
	return durations
}

func samplesOf(who Side, round int, done ...int) []Sample {
	var all []Sample
	for _, d := range milliseconds(done...) {
		all = append(all, Sample{Side: who, Round: round, Exited: d / 10, Ready: d, Done: d})
	}
	return all
}

func TestFigures(t *testing.T) {
	t.Parallel()
	samples := append(samplesOf(Ours, 0, 1000, 2000), samplesOf(Ours, 1, 3000, 4000)...)
	want := Figures{Runs: 4, P50: 2 * time.Second, P99: 4 * time.Second, Last: 3 * time.Second, Spread: 2 * time.Second}
	if diff := cmp.Diff(want, figuresOf(samples)); diff != "" {
		t.Error(diff)
	}
}

func TestJudgeOne(t *testing.T) {
	t.Parallel()
	samples := append(samplesOf(Ours, 0, 140, 150, 160), samplesOf(Floor, 0, 100, 100, 100)...)
	got := One(Result{Samples: samples, Cost: meter.Cost{WritesEach: 4.5}}).Verdicts
	want := []report.Verdict{
		{What: "overhead, p50 of the pairs", Target: "<= 50 ms", Found: "50 ms", Met: true},
		{What: "overhead, difference of the p99", Target: "<= 250 ms", Found: "60 ms", Met: true},
		{What: "API writes per request", Target: "<= 4", Found: "4.50"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestJudges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		judge func(Result) Result
		given Result
		want  report.Verdict
	}{
		"batch within the ratio": {
			Batch, Result{Samples: append(samplesOf(Ours, 0, 1150), samplesOf(Floor, 0, 1000)...)},
			report.Verdict{What: "last one, of the floor's", Target: "<= 1.15 x", Found: "1.15 x", Met: true},
		},
		"batch beyond the ratio": {
			Batch, Result{Samples: append(samplesOf(Ours, 0, 1160), samplesOf(Floor, 0, 1000)...)},
			report.Verdict{What: "last one, of the floor's", Target: "<= 1.15 x", Found: "1.16 x"},
		},
		"ignorers too late": {
			Ignorers, Result{Samples: append(samplesOf(Ours, 0, 13100), samplesOf(Floor, 0, 14000)...)},
			report.Verdict{What: "last one", Target: "<= 13.00 s", Found: "13.10 s"},
		},
		"fifth in a row": {
			Row, Result{Samples: samplesOf(Ours, 0, 9000, 9000, 9000, 9000, 1500)},
			report.Verdict{What: "fifth restart", Target: "<= 1.50 s", Found: "1.50 s", Met: true},
		},
		"crash loop": {
			Crash, Result{Samples: samplesOf(Ours, 0, 2600)},
			report.Verdict{What: "out of CrashLoopBackOff", Target: "<= 2.50 s", Found: "2.60 s"},
		},
		"memory": {
			Memory, Result{Cost: meter.Cost{RSS: 30 << 20}},
			report.Verdict{What: "RSS with 110 pods", Target: "<= 30.0 MiB", Found: "30.0 MiB", Met: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.judge(tc.given).Verdicts[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
