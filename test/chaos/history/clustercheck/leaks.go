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
	type process struct {
		program string
		pid     int
	}
	type stretch struct { // of the life of a process, in which it led or did not
		process
		number int
	}
	last, numbers := map[process]entry.Sample{}, map[process]int{}
	byStretch := map[stretch][]entry.Sample{}
	for _, s := range slices.SortedStableFunc(slices.Values(c.Samples), func(a, b entry.Sample) int { return a.At.Compare(b.At) }) {
		of := process{s.Program, s.PID}
		if last[of].Leads != s.Leads {
			numbers[of]++
		}
		last[of] = s
		byStretch[stretch{of, numbers[of]}] = append(byStretch[stretch{of, numbers[of]}], s)
	}
	for of, all := range byStretch {
		name := fmt.Sprintf("%s %d", of.program, of.pid)
		if all[0].Leads {
			name += " as leader"
		}
		if all[len(all)-1].At.Sub(all[0].At) < leakTime {
			continue
		}
		c.Report.Totals.Sampled++
		early, late := all[len(all)/4:len(all)/2], all[len(all)*3/4:]
		for _, grown := range []struct {
			what string
			of   func(entry.Sample) int64
			last func([]entry.Sample, func(entry.Sample) int64) int64 // of the last quarter
			most int64
		}{
			{"bytes of memory", func(s entry.Sample) int64 { return s.Anon }, median, moreMemory},
			{"files", func(s entry.Sample) int64 { return int64(s.Files) }, least, moreFiles},
			{"threads", func(s entry.Sample) int64 { return int64(s.Threads) }, median, moreThreads},
		} {
			before, now := median(early, grown.of), grown.last(late, grown.of)
			if now-before > grown.most {
				c.Violate("leak", name, fmt.Sprintf("had %d %s after a quarter of its life, and %d in the last quarter", before, grown.what, now), early[0].Line, late[len(late)-1].Line)
			}
		}
	}
}

// least is for files: the API server keeps the connections of a burst of reviews for 90 s, which can be most of a last quarter.
func least(samples []entry.Sample, of func(entry.Sample) int64) int64 {
	value := of(samples[0])
	for _, s := range samples {
		value = min(value, of(s))
	}
	return value
}

func median(samples []entry.Sample, of func(entry.Sample) int64) int64 {
	values := make([]int64, 0, len(samples))
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
