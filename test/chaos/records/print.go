package records

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// Print writes the verdict.
func Print(out io.Writer, report verdict.Report) {
	t := report.Totals
	fmt.Fprintf(out, "\nrequests    %d: %d succeeded, %d failed, %d deleted\n", t.Requests, t.Succeeded, t.Failed, t.Deleted)
	fmt.Fprintf(out, "stops       %d containers for %d containers of requests; %d repeated calls; %d ends seen by the applications\n",
		t.Stops, t.Orders, t.Repeated, t.Ends)
	fmt.Fprintf(out, "turns       %d of probed applications, %d followed before the next, the slowest in %s, not counting faults; %d had to be\n",
		t.Turns, t.Followed, t.Slowest.Round(time.Millisecond), t.Due)
	fmt.Fprintf(out, "pulls       %d; %d jobs deleted after a pull had failed\n", t.Pulls, t.Cancelled)
	fmt.Fprintf(out, "processes   %d of ours lived for minutes\n", t.Sampled)
	fmt.Fprintf(out, "updates     %d of files by sidecars: %d accepted, %d refused\n", t.Updates, t.Updated, t.Refused)
	fmt.Fprintf(out, "rollouts    %d of workloads, %d ended; %d for changes of a ConfigMap, %d by a schedule\n", t.Rollouts, t.RolledOut, t.Triggered, t.Scheduled)
	fmt.Fprintf(out, "sidecars    %d updates of pods by SidecarSets\n", t.SidecarUpdates)
	fmt.Fprintf(out, "templates   %d updates of pods by InPlaceUpdatePolicies, %d templates that all pods of a workload got\n", t.Followers, t.Templates)
	fmt.Fprintf(out, "taken       %d pods of workloads with a Service, by all that restarts, updates or evicts them\n", t.Taken)
	fmt.Fprintf(out, "machine     programs wrote their first line up to %s after their start, in nine of ten cases\n", t.Late.Round(time.Millisecond))
	fmt.Fprintf(out, "trespasses  %d refused\n", t.Denied)
	if kills := t.Faults[entry.KindDaemonKill]; kills > 0 && t.Lasted > 0 {
		fmt.Fprintf(out, "kills       %d of daemons, %.0f an hour\n", kills, float64(kills)/t.Lasted.Hours())
	}
	for _, kind := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(out, "fault       %-20s %d\n", kind, t.Faults[kind])
	}
	for _, violation := range report.Violations {
		fmt.Fprintf(out, "\n%s\n", violation)
	}
	found := map[string]int{}
	for _, violation := range report.Violations {
		found[violation.Invariant]++
	}
	fmt.Fprintln(out)
	for _, invariant := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I8", "I9", "I10", "I11", "I12", "I13", "I14", "I15", "I16", "I17", "I18", "I19", "I20", "I21", "I22", "admission", "crash", "grace", "leak", "verdict", "volume"} {
		verdict := "no violation found"
		if n := found[invariant]; n > 0 {
			verdict = fmt.Sprintf("VIOLATED %d times", n)
		}
		fmt.Fprintf(out, "%-9s %s\n", invariant, verdict)
	}
	for _, why := range report.Refused {
		fmt.Fprintf(out, "REFUSED: the run proves nothing: %s\n", why)
	}
}
