package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// answer is what a program serves after so many readings.
func answer(n int) []byte {
	return fmt.Appendf(nil, `# TYPE refit_crr_completed_total counter
refit_crr_completed_total{result="succeeded",reason="Succeeded"} %[1]d
refit_crr_step_duration_seconds_bucket{step="stop",le="1"} %[1]d
refit_crr_step_duration_seconds_bucket{step="stop",le="+Inf"} %[2]d
refit_probe_lateness_seconds_bucket{le="0.1"} %[1]d
refit_probe_lateness_seconds_bucket{le="+Inf"} %[2]d
refit_build_info{program="refit-daemon",version="<dev>"} 1
`, n, 2*n)
}

func TestPanelsShowWhatWasRead(t *testing.T) {
	t.Parallel()
	r := &recorder{interval: 5 * time.Second, folder: t.TempDir()}
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.db.Close() }()
	from := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	to := from
	for n := range 60 {
		to = from.Add(time.Duration(n) * r.interval)
		if err := r.store(t.Context(), answer(n), map[string]string{"job": "refit-daemon", "instance": "a"}, to); err != nil {
			t.Fatal(err)
		}
	}
	panels, err := readPanels(filepath.Join("..", "..", "..", "deploy", "chart", "files", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	results, err := r.evaluate(t.Context(), panels, from, to, r.interval)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, result := range results {
		found[result.Title] = len(result.series)
	}
	for title, want := range map[string]int{"Requests ended, by result and reason": 1, "Time of each step, p50 and p99": 2, "Lateness of probes": 2, "Versions": 1, "Image pulls": 0} {
		if found[title] != want {
			t.Errorf("panel %q has %d series, want %d", title, found[title], want)
		}
	}
	picture := draw(results, from, to)
	for _, words := range []string{"succeeded Succeeded, at most 0.2/s", "{program=&#34;refit-daemon&#34;, version=&#34;&lt;dev&gt;&#34;} 1<", "<polyline", "fill-opacity", "nothing in this time", "&lt;dev&gt;"} {
		if !strings.Contains(string(picture), words) {
			t.Errorf("the picture has no %q", words)
		}
	}
	for decoder := xml.NewDecoder(bytes.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is not XML: %v", err)
		}
	}
}
