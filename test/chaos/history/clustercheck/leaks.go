package clustercheck

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

const (
	// leakTime is how long a process must have lived for its growth to mean something.
	leakTime = 4 * time.Minute
	// What a process may use more at its end than in its second quarter: what a garbage collector leaves, and connections.
	moreMemory  = 12 << 20 // bytes
	moreFiles   = 12
	moreThreads = 10
)

// leaks checks that processes do not use more and more. A manager that comes to lead is judged anew.
func (c check) leaks() {
	byProcess := map[string][]entry.Sample{}
	for _, s := range c.Samples {
		name := fmt.Sprintf("%s %d", s.Program, s.PID)
		if s.Leads {
			name += " as leader"
		}
		byProcess[name] = append(byProcess[name], s)
	}
	for name, all := range byProcess {
		slices.SortFunc(all, func(a, b entry.Sample) int { return a.At.Compare(b.At) })
		if all[len(all)-1].At.Sub(all[0].At) < leakTime {
			continue
		}
		c.Report.Totals.Sampled++
		early, late := all[len(all)/4:len(all)/2], all[len(all)*3/4:]
		for _, grown := range []struct {
			what string
			of   func(entry.Sample) int64
			most int64
		}{
			{"bytes of memory", func(s entry.Sample) int64 { return s.Anon }, moreMemory},
			{"files", func(s entry.Sample) int64 { return int64(s.Files) }, moreFiles},
			{"threads", func(s entry.Sample) int64 { return int64(s.Threads) }, moreThreads},
		} {
			before, now := median(early, grown.of), median(late, grown.of)
			if now-before > grown.most {
				c.Violate("leak", name, fmt.Sprintf("had %d %s after a quarter of its life, and %d in the last quarter", before, grown.what, now), early[0].Line, late[len(late)-1].Line)
			}
		}
	}
}

func median(samples []entry.Sample, of func(entry.Sample) int64) int64 {
	values := make([]int64, 0, len(samples))
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
