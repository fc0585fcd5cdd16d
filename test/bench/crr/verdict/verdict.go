// Package verdict judges the samples of a benchmark of restarts against the targets of the project.
package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/test/bench/crr/meter"
	"github.com/refit-project/refit/test/bench/report"
)

// Targets of the project.
const (
	targetOverheadP50 = 50 * time.Millisecond
	targetOverheadP99 = 250 * time.Millisecond
	targetRatio       = 1.15
	targetFifth       = 1500 * time.Millisecond
	targetCrashLoop   = 2500 * time.Millisecond
	targetIgnorers    = IgnorersGrace + 3*time.Second
	targetWrites      = 4
	targetRSS         = 30 << 20
)

// What the scenarios do, and the targets refer to.
const (
	// IgnorersGrace is what containers get that ignore SIGTERM.
	IgnorersGrace = 10 * time.Second
	// InARow is how often one container is restarted.
	InARow = 5
	// PodsOfNode is how many pods the daemon's memory is measured with: kubelet's default limit.
	PodsOfNode = 110
)

// Side is one of the two that take turns.
type Side string

// The sides.
const (
	Ours  Side = "refit" // a ContainerRecreateRequest
	Floor Side = "floor" // the same stop, sent straight to CRI
)

// Sample is one restart as it was timed. Durations count from the begin of its batch.
type Sample struct {
	Side  Side `json:"side"`
	Round int  `json:"round"`
	// Exited is when the old instance ended, by the runtime's record; zero when that was removed.
	Exited time.Duration `json:"exitedNanoseconds,omitempty"`
	// Ready is when the pod's status with a new container that is ready reached our watch.
	Ready time.Duration `json:"readyNanoseconds"`
	// Done is when the user knows: Ready of the floor, completion of the request as it reached our watch of Refit.
	Done time.Duration `json:"doneNanoseconds"`
}

// Result of one scenario.
type Result struct {
	Name     string           `json:"name"`
	Ours     Figures          `json:"refit"`
	Floor    Figures          `json:"floor"`
	Ratio    float64          `json:"ratioOfLast,omitempty"`
	Cost     meter.Cost       `json:"cost"`
	Verdicts []report.Verdict `json:"verdicts"`
	Notes    []string         `json:"notes,omitempty"`
	Samples  []Sample         `json:"samples"`
	// Work is the CPU time of the whole cluster for all restarts of each side.
	Work map[Side]time.Duration `json:"clusterCPUNanoseconds,omitempty"`
}

// Figures sum up the samples of one side.
type Figures struct {
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

func (r *Result) of(who Side) []Sample {
	return slices.DeleteFunc(slices.Clone(r.Samples), func(s Sample) bool { return s.Side != who })
}

// sum fills in what the judges of all scenarios need.
func (r *Result) sum() {
	r.Ours, r.Floor = figuresOf(r.of(Ours)), figuresOf(r.of(Floor))
	r.Ours.Work, r.Floor.Work = r.Work[Ours]/time.Duration(max(r.Ours.Runs, 1)), r.Work[Floor]/time.Duration(max(r.Floor.Runs, 1))
	if r.Floor.Last > 0 {
		r.Ratio = float64(r.Ours.Last) / float64(r.Floor.Last)
	}
}

func figuresOf(samples []Sample) Figures {
	var done, lasts []time.Duration
	rounds := map[int]time.Duration{}
	for _, s := range samples {
		done = append(done, s.Done)
		rounds[s.Round] = max(rounds[s.Round], s.Done)
	}
	for _, last := range rounds {
		lasts = append(lasts, last)
	}
	return Figures{
		Runs: len(samples), P50: report.Quantile(done, 0.5), P99: report.Quantile(done, 0.99), Last: mean(lasts), Spread: spread(lasts),
	}
}

func (r *Result) judge(what string, found, target time.Duration) {
	r.Verdicts = append(r.Verdicts, report.AtMost(what, found, target, report.Duration))
}

func (r *Result) judgeWrites() {
	r.Verdicts = append(r.Verdicts, report.Verdict{
		What: "API writes per request", Target: fmt.Sprintf("<= %d", targetWrites),
		Found: fmt.Sprintf("%.2f", r.Cost.WritesEach), Met: r.Cost.WritesEach <= targetWrites,
	})
}

// One judges the median by the pairs: both of a pair begin at the same place in kubelet's relist period, whose
// length would otherwise drown a difference of milliseconds between two medians. The far ends are compared as they are,
// since a pair may fall on two sides of a relist, a second apart, in either order. The notes say how much of the
// difference is Refit's own: what passes before the old instance has ended beyond what that takes the floor, and after
// the pod is ready.
func One(r Result) Result {
	r.sum()
	var stopping, before, after, own, differences []time.Duration
	floors := r.of(Floor)
	for _, s := range floors {
		stopping = append(stopping, s.Exited)
	}
	usual := report.Quantile(stopping, 0.5)
	for i, s := range r.of(Ours) {
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

// Batch judges restarts of many at once by the floor's.
func Batch(r Result) Result {
	r.sum()
	r.Verdicts = append(r.Verdicts, report.AtMost("last one, of the floor's", r.Ratio, targetRatio, report.Ratio))
	r.judgeWrites()
	r.noteWork()
	return r
}

// noteWork says what of a ratio above 1 is to be expected where the CPUs are what holds up a batch.
func (r *Result) noteWork() {
	if r.Floor.Work > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("CPU time of the whole cluster per restart: %s, floor %s, ratio %.2f",
			report.Duration(r.Ours.Work), report.Duration(r.Floor.Work), float64(r.Ours.Work)/float64(r.Floor.Work)))
	}
}

// Ignorers judges restarts of containers that have to be killed.
func Ignorers(r Result) Result {
	r.sum()
	r.judge("last one", r.Ours.Last, targetIgnorers)
	r.judgeWrites()
	r.Notes = append(r.Notes, fmt.Sprintf("the floor's last: %s; of it kubelet takes %s after the grace period", report.Duration(r.Floor.Last), report.Duration(r.Floor.Last-IgnorersGrace)))
	return r
}

// Row judges restarts of one container in a row.
func Row(r Result) Result {
	r.sum()
	for _, who := range []Side{Ours, Floor} {
		line := string(who) + ":"
		for _, s := range r.of(who) {
			line += " " + report.Duration(s.Done)
		}
		r.Notes = append(r.Notes, line)
	}
	if all := r.of(Ours); len(all) == InARow {
		r.judge("fifth restart", all[InARow-1].Done, targetFifth)
	}
	return r
}

// Crash judges the start of a container in CrashLoopBackOff.
func Crash(r Result) Result {
	r.sum()
	r.judge("out of CrashLoopBackOff", r.Ours.Last, targetCrashLoop)
	r.Notes = append(r.Notes, fmt.Sprintf("kubelet by itself: %s", report.Duration(r.Floor.Last)))
	return r
}

// Memory judges the daemon's memory on a full node.
func Memory(r Result) Result {
	r.Verdicts = append(r.Verdicts, report.AtMost(fmt.Sprintf("RSS with %d pods", PodsOfNode), r.Cost.RSS, targetRSS, report.Bytes))
	return r
}
