package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refit-project/refit/test/bench/report"
)

func TestSaveWritesWhatBenchstatAndABrowserRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	err := report.Save(folder, "crr", &found{figures: []report.Figure{
		{Name: "40 at once/last", Unit: "ns/op", Value: 2.5e9, Floor: 2e9},
		{Name: "RSS <idle>", Unit: "B", Value: 3 << 20},
	}})
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	want := "BenchmarkCrr/40_at_once/last 1 2.5e+09 ns/op\nBenchmarkCrr/40_at_once/last/floor 1 2e+09 ns/op\nBenchmarkCrr/RSS_idle_ 1 3.145728e+06 B\n"
	if got := read("crr.bench"); got != want {
		t.Errorf("for benchstat:\n%s want:\n%s", got, want)
	}
	picture := read("crr.svg")
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
	for _, words := range []string{`width="400.0"`, `width="320.0"`, "2500 ms", "3.0 MiB", "RSS &lt;idle&gt;"} {
		if !strings.Contains(picture, words) {
			t.Errorf("the picture lacks %q", words)
		}
	}
}
