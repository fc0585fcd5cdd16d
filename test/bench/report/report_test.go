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

type found struct {
	report.Machine
	figures  []report.Figure
	verdicts report.Verdicts
}

func (found) Print(out io.Writer) error {
	_, err := fmt.Fprintln(out, "a table")
	return err
}
func (f found) Figures() []report.Figure  { return f.figures }
func (f found) Verdicts() report.Verdicts { return f.verdicts }

func TestSaveKeepsTablesAndData(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "bench")
	f := &found{Machine: report.Begin()}
	f.verdicts.Add("one", report.Verdict{What: "late", Target: "<= 1 s", Found: "2 s"}, report.Verdict{What: "writes", Target: "0", Found: "0", Met: true})
	f.End()
	if f.Loop <= 0 {
		t.Errorf("the fixed computation took %s", f.Loop)
	}
	if err := report.Save(folder, "x", f); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"x.txt": "MISSED", "x.json": fmt.Sprintf(`"cpus": %d`, f.CPUs), "x.verdicts.json": `"about": "one"`,
	} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: %v, %s, want %q in it", name, err, content, want)
		}
	}
}
