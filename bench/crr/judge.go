package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/bench/report"
)

// Targets of the project.
const (
	targetOverheadP50 = 50 * time.Millisecond
	targetOverheadP99 = 250 * time.Millisecond
	targetRatio       = 1.15
	targetFifth       = 1500 * time.Millisecond
	targetCrashLoop   = 2500 * time.Millisecond
	targetIgnorers    = ignorersGrace + 3*time.Second
	targetWrites      = 4
	targetRSS         = 30 << 20
)

// result of one scenario.
type result struct {
	Name     string           `json:"name"`
	Ours     figures          `json:"refit"`
	Floor    figures          `json:"floor"`
	Ratio    float64          `json:"ratioOfLast,omitempty"`
	Cost     cost             `json:"cost"`
	Verdicts []report.Verdict `json:"verdicts"`
	Notes    []string         `json:"notes,omitempty"`
	Samples  []sample         `json:"samples"`
	// Work is the CPU time of the whole cluster for all restarts of each side.
	Work map[side]time.Duration `json:"clusterCPUNanoseconds,omitempty"`
}

// figures sum up the samples of one side.
type figures struct {
	Runs int           `json:"runs"`
	P50  time.Duration `json:"p50Nanoseconds"`
	P99  time.Duration `json:"p99Nanoseconds"`
	// Last is when the last of a round was done, the mean of the rounds, and Spread how far the rounds differ.
	Last   time.Duration `json:"lastNanoseconds"`
	Spread time.Duration `json:"spreadNanoseconds"`
	// Work is the CPU time of the whole cluster per restart, of batches. Other load on the machine, which stretches all
	// times, leaves it nearly as it is.
	Work time.Duration `json:"clusterCPUPerRestartNanoseconds,omitempty"`
}

func (r *result) of(who side) []sample {
	return slices.DeleteFunc(slices.Clone(r.Samples), func(s sample) bool { return s.Side != who })
}

// sum fills in what the judges of all scenarios need.
func (r *result) sum() {
	r.Ours, r.Floor = figuresOf(r.of(ours)), figuresOf(r.of(floor))
	r.Ours.Work, r.Floor.Work = r.Work[ours]/time.Duration(max(r.Ours.Runs, 1)), r.Work[floor]/time.Duration(max(r.Floor.Runs, 1))
	if r.Floor.Last > 0 {
		r.Ratio = float64(r.Ours.Last) / float64(r.Floor.Last)
	}
}

func figuresOf(samples []sample) figures {
	var done, lasts []time.Duration
	rounds := map[int]time.Duration{}
	for _, s := range samples {
		done = append(done, s.Done)
		rounds[s.Round] = max(rounds[s.Round], s.Done)
	}
	for _, last := range rounds {
		lasts = append(lasts, last)
	}
	return figures{
		Runs: len(samples), P50: report.Quantile(done, 0.5), P99: report.Quantile(done, 0.99), Last: mean(lasts), Spread: spread(lasts),
	}
}

func (r *result) judge(what string, found, target time.Duration) {
	r.Verdicts = append(r.Verdicts, report.Verdict{What: what, Target: "<= " + report.Duration(target), Found: report.Duration(found), Met: found <= target})
}

func (r *result) judgeWrites() {
	r.Verdicts = append(r.Verdicts, report.Verdict{
		What: "API writes per request", Target: fmt.Sprintf("<= %d", targetWrites),
		Found: fmt.Sprintf("%.2f", r.Cost.WritesEach), Met: r.Cost.WritesEach <= targetWrites,
	})
}

func (r *result) judgeRatio() {
	r.Verdicts = append(r.Verdicts, report.Verdict{
		What: "last one, of the floor's", Target: fmt.Sprintf("<= %.2f x", targetRatio),
		Found: fmt.Sprintf("%.2f x", r.Ratio), Met: r.Ratio <= targetRatio,
	})
}

// judgeOne judges the median by the pairs: both of a pair begin at the same place in kubelet's relist period, whose
// length would otherwise drown a difference of milliseconds between two medians. The far ends are compared as they are,
// since a pair may fall on two sides of a relist, a second apart, in either order. The notes say how much of the
// difference is Refit's own: what passes before the old instance has ended beyond what that takes the floor, and after
// the pod is ready.
func judgeOne(r result) result {
	r.sum()
	var stopping, before, after, own, differences []time.Duration
	floors := r.of(floor)
	for _, s := range floors {
		stopping = append(stopping, s.Exited)
	}
	usual := report.Quantile(stopping, 0.5)
	for i, s := range r.of(ours) {
		before, after = append(before, s.Exited-usual), append(after, s.Done-s.Ready)
		own = append(own, s.Exited-usual+s.Done-s.Ready)
		if i < len(floors) {
			differences = append(differences, s.Done-floors[i].Done)
		}
	}
	r.judge("overhead, p50 of the pairs", report.Quantile(differences, 0.5), targetOverheadP50)
	r.judge("overhead, difference of the p99", r.Ours.P99-r.Floor.P99, targetOverheadP99)
	r.judgeWrites()
	r.Notes = append(r.Notes,
		fmt.Sprintf("own share: p50 %s, p99 %s (until the stop: %s, %s; after the pod is ready: %s, %s)",
			report.Duration(report.Quantile(own, 0.5)), report.Duration(report.Quantile(own, 0.99)), report.Duration(report.Quantile(before, 0.5)), report.Duration(report.Quantile(before, 0.99)),
			report.Duration(report.Quantile(after, 0.5)), report.Duration(report.Quantile(after, 0.99))),
		fmt.Sprintf("difference of the pairs: quartiles %s and %s; of the medians: %s",
			report.Duration(report.Quantile(differences, 0.25)), report.Duration(report.Quantile(differences, 0.75)), report.Duration(r.Ours.P50-r.Floor.P50)))
	return r
}

func judgeBatch(r result) result {
	r.sum()
	r.judgeRatio()
	r.judgeWrites()
	r.noteWork()
	return r
}

// noteWork says what of a ratio above 1 is to be expected where the CPUs are what holds up a batch.
func (r *result) noteWork() {
	if r.Floor.Work > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("CPU time of the whole cluster per restart: %s, floor %s, ratio %.2f",
			report.Duration(r.Ours.Work), report.Duration(r.Floor.Work), float64(r.Ours.Work)/float64(r.Floor.Work)))
	}
}

func judgeIgnorers(r result) result {
	r.sum()
	r.judge("last one", r.Ours.Last, targetIgnorers)
	r.judgeWrites()
	r.Notes = append(r.Notes, fmt.Sprintf("the floor's last: %s; of it kubelet takes %s after the grace period", report.Duration(r.Floor.Last), report.Duration(r.Floor.Last-ignorersGrace)))
	return r
}

func judgeRow(r result) result {
	r.sum()
	for _, who := range []side{ours, floor} {
		line := string(who) + ":"
		for _, s := range r.of(who) {
			line += " " + report.Duration(s.Done)
		}
		r.Notes = append(r.Notes, line)
	}
	if all := r.of(ours); len(all) == inARow {
		r.judge("fifth restart", all[inARow-1].Done, targetFifth)
	}
	return r
}

func judgeCrash(r result) result {
	r.sum()
	r.judge("out of CrashLoopBackOff", r.Ours.Last, targetCrashLoop)
	r.Notes = append(r.Notes, fmt.Sprintf("kubelet by itself: %s", report.Duration(r.Floor.Last)))
	return r
}

func judgeMemory(r result) result {
	r.Verdicts = append(r.Verdicts, report.Verdict{
		What: fmt.Sprintf("RSS with %d pods", podsOfNode), Target: "<= " + report.Bytes(targetRSS), Found: report.Bytes(r.Cost.RSS), Met: r.Cost.RSS <= targetRSS,
	})
	return r
}
