package report_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/test/bench/report"
)

func ms(all ...int) []time.Duration {
	durations := make([]time.Duration, len(all))
	for i, n := range all {
		durations[i] = time.Duration(n) * time.Millisecond
	}
	return durations
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[99-i] = time.Duration(i + 1)
	}
	for name, tc := range map[string]struct {
		values []time.Duration
		q      float64
		want   time.Duration
	}{
		"none":                  {nil, 0.5, 0},
		"one":                   {ms(7), 0.99, 7 * time.Millisecond},
		"middle of odd":         {ms(3, 1, 2), 0.5, 2 * time.Millisecond},
		"lower middle of even":  {ms(4, 1, 3, 2), 0.5, 2 * time.Millisecond},
		"p99 of few is largest": {ms(1, 9, 2), 0.99, 9 * time.Millisecond},
		"p99 of a hundred":      {hundred, 0.99, 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := report.Quantile(tc.values, tc.q); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSaveKeepsTableAndData(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "bench")
	machine := report.Begin()
	machine.End()
	table := func(out io.Writer) error {
		verdicts := report.NewVerdicts(out)
		verdicts.Add("one", report.Verdict{What: "late", Target: "<= 1 s", Found: "2 s"}, report.Verdict{What: "writes", Target: "0", Found: "0", Met: true})
		return verdicts.Flush()
	}
	if err := report.Save(folder, "x", &machine, table); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"x.txt": "MISSED", "x.json": fmt.Sprintf(`"cpus": %d`, machine.CPUs)} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: %v, %s, want %q in it", name, err, content, want)
		}
	}
}
