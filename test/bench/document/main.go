// document writes the tables of docs/benchmarks.md: what the last run of each benchmark in dist/bench found, beside its targets.
// The table of a benchmark that has not been run stays as it is.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-project/refit/test/bench/report"
)

func main() {
	folder := flag.String("reports", report.Folder, "folder with the reports")
	document := flag.String("document", "docs/benchmarks.md", "document with a table for each benchmark")
	flag.Parse()
	if err := run(*folder, *document); err != nil {
		fmt.Fprintln(os.Stderr, "document:", err)
		os.Exit(1)
	}
}

func run(folder, document string) error {
	reports, err := filepath.Glob(filepath.Join(folder, "*"+report.SummarySuffix))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	var failed error
	for _, name := range reports {
		summary, err := read(name)
		if err == nil {
			var filled []byte
			if filled, err = fill(text, summary); err == nil {
				text = filled
			}
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(failed, os.WriteFile(document, text, 0o644))
}

func read(name string) (*report.Summary, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var s report.Summary
	return &s, json.Unmarshal(raw, &s)
}
