package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/test/bench/report"
)

const text = `# Benchmarks
before
<!-- crr: what was found -->
| old |
<!-- end -->
between
<!-- pull: what was found -->
| kept |
<!-- end -->
after
`

func TestTheTableOfARunReplacesTheFormerOne(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	document := filepath.Join(folder, "benchmarks.md")
	summary := report.Summary{Benchmark: "crr", Machine: report.Machine{
		Time: time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC), CPUs: 2, Loop: 40 * time.Millisecond, LoadBefore: "0.52 1 1", LoadAfter: "3.10 1 1",
	}}
	summary.Verdicts.Add("40 at once", report.Verdict{What: "last one", Target: "<= 1.15 x", Found: "1.26 x"}, report.Verdict{What: "a|b", Target: "0", Found: "0", Met: true})
	raw, err := json.Marshal(summary)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{document: text, filepath.Join(folder, "crr"+report.SummarySuffix): string(raw)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(folder, document); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, "| old |\n", `| what | found | target | |
|---|---|---|---|
| 40 at once: last one | 1.26 x | <= 1.15 x | **missed** |
| 40 at once: a\|b | 0 | 0 | met |

27 November 2026, 2 CPUs, SHA-256 of 16 MiB in 40 ms, load average 0.52 before and 3.10 after.
`, 1)
	if string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestAReportWithoutAPlaceIsAnErrorAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{"no place": "# Benchmarks\n", "no end": "<!-- crr: what was found -->\n| old |\n"} {
		if _, err := fill([]byte(document), &report.Summary{Benchmark: "crr"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Every benchmark with targets has its table.
func TestTheDocumentHasAPlaceForEachBenchmark(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"admission", "crr", "hotupdate", "inplace", "marker", "memory", "policies", "probe", "pull", "sidecarset", "workload"} {
		if _, err := fill(document, &report.Summary{Benchmark: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
