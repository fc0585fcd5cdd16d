package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/availabilitycheck"
	"github.com/refit-project/refit/test/chaos/history/clustercheck"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
	"github.com/refit-project/refit/test/chaos/history/policycheck"
	"github.com/refit-project/refit/test/chaos/history/requestcheck"
	"github.com/refit-project/refit/test/chaos/history/rolloutcheck"
	"github.com/refit-project/refit/test/chaos/history/sidecarsetcheck"
	"github.com/refit-project/refit/test/chaos/history/stopcheck"
	"github.com/refit-project/refit/test/chaos/history/updatecheck"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// Check judges a run.
func Check(records model.Records, options verdict.Options) verdict.Report {
	j := &verdict.Judgement{Model: model.New(records), Options: options}
	j.Report.Totals.Faults = map[string]int{}
	var begin, end time.Time
	for _, fault := range records.Faults {
		j.Report.Totals.Faults[fault.Kind]++
		if fault.Kind == entry.KindAbsent {
			continue
		}
		if begin.IsZero() || fault.Begin.Before(begin) {
			begin = fault.Begin
		}
		if fault.End.After(end) {
			end = fault.End
		}
	}
	j.Report.Totals.Lasted, j.Report.Totals.Late = end.Sub(begin), j.Late()
	stopcheck.Check(j)
	requestcheck.Check(j)
	clustercheck.Check(j)
	rolloutcheck.Check(j)
	updatecheck.Check(j)
	sidecarsetcheck.Check(j)
	availabilitycheck.Check(j)
	policycheck.Check(j)
	count(j)
	load(j)
	return j.Report
}

func count(j *verdict.Judgement) {
	totals := &j.Report.Totals
	totals.Turns = len(j.Turns)
	for _, r := range j.Requests {
		totals.Requests++
		switch terminal := r.Terminal(); {
		case terminal == nil && r.Deleted != nil:
			totals.Deleted++
		case terminal == nil:
		case terminal.Request.Status.Message == "":
			totals.Succeeded++
		default:
			totals.Failed++
		}
	}
}

// load refuses a run that was too small to find anything: such a run would pass with any bug.
func load(j *verdict.Judgement) {
	totals, least := j.Report.Totals, j.Options.Least
	refuse := func(what string, got, want int) {
		if got < want {
			j.Report.Refused = append(j.Report.Refused, fmt.Sprintf("%s: %d, want at least %d", what, got, want))
		}
	}
	refuse("requests", totals.Requests, least.Requests)
	refuse("succeeded requests", totals.Succeeded, least.Succeeded)
	refuse("stopped containers", totals.Stops, least.Stops)
	refuse("followed turns", totals.Followed, least.Followed)
	refuse("turns with the time to be followed", totals.Due, least.Due)
	refuse("jobs deleted after a failed pull", totals.Cancelled, least.Cancelled)
	refuse("refused writes to another node", totals.Denied, least.Denied)
	refuse("accepted updates", totals.Updated, least.Updated)
	refuse("refused updates", totals.Refused, least.Refused)
	refuse("updates of SidecarSets", totals.SidecarUpdates, least.SidecarUpdates)
	refuse("takes of pods of watched workloads", totals.Taken, least.Taken)
	refuse("pods that followed the template of their workload", totals.Followers, least.Followers)
	refuse("ended rollouts", totals.RolledOut, least.RolledOut)
	refuse("rollouts for changes", totals.Triggered, least.Triggered)
	for kind, want := range least.Faults {
		refuse("faults "+kind, totals.Faults[kind], want)
	}
	slices.Sort(j.Report.Refused)
	if kills := totals.Faults[entry.KindAPIServerKill]; j.Broken > kills {
		j.Report.Refused = append(j.Report.Refused,
			fmt.Sprintf("audit log: %d broken lines, but the API server was killed %d times", j.Broken, kills))
	}
}
