package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/refit-project/refit/test/bench/report"
)

// Marks around the table of a benchmark in the document.
const (
	openMark  = "<!-- %s: what was found -->\n"
	closeMark = "<!-- end -->\n"
)

// fill returns the document with the table of this run in the place of the former one. The other text stays as it is.
func fill(document []byte, s *report.Summary) ([]byte, error) {
	begin := fmt.Sprintf(openMark, s.Benchmark)
	before, rest, found := bytes.Cut(document, []byte(begin))
	if !found {
		return nil, fmt.Errorf("no line %q", strings.TrimSpace(begin))
	}
	_, after, found := bytes.Cut(rest, []byte(closeMark))
	if !found {
		return nil, fmt.Errorf("no line %q after %q", strings.TrimSpace(closeMark), strings.TrimSpace(begin))
	}
	return bytes.Join([][]byte{before, []byte(begin), table(s), []byte(closeMark), after}, nil), nil
}

// table has the figures with their targets, and the machine below them.
func table(s *report.Summary) []byte {
	var out bytes.Buffer
	out.WriteString("| what | found | target | |\n|---|---|---|---|\n")
	for _, v := range s.Verdicts {
		outcome := "met"
		if !v.Met {
			outcome = "**missed**"
		}
		fmt.Fprintf(&out, "| %s: %s | %s | %s | %s |\n", cell(v.About), cell(v.What), cell(v.Found), cell(v.Target), outcome)
	}
	m := s.Machine
	fmt.Fprintf(&out, "\n%s, %d CPUs, SHA-256 of 16 MiB in %s, load average %s before and %s after.\n",
		m.Time.UTC().Format("2 January 2006"), m.CPUs, report.Duration(m.Loop), first(m.LoadBefore), first(m.LoadAfter))
	return out.Bytes()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// first returns the load average of the last minute.
func first(loadavg string) string {
	one, _, _ := strings.Cut(loadavg, " ")
	return one
}
