// Package verdict is what a judgement is given and what it finds.
package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// Noticed is how far apart the proxy's word on a stop and the application's may lie: both are of one machine's
// clock, but an application that is starting or ending writes a little late.
const Noticed = time.Second

// Violation is a promise that was not kept.
type Violation struct {
	Invariant string // I1 ..., admission, crash, grace, leak, verdict or volume
	Subject   string // the request or container
	What      string
	Proof     []entry.Line
}

func (v Violation) String() string {
	text := fmt.Sprintf("%s violated: %s: %s", v.Invariant, v.Subject, v.What)
	for _, line := range v.Proof {
		text += "\n    " + line.String()
	}
	return text
}

// Options of the judgement.
type Options struct {
	// Daemon is the user name of the daemon in the audit log, Manager the user name of the manager.
	Daemon, Manager string
	// Patience is how long a request may take from its turn on, beside the times it asks for itself.
	Patience time.Duration
	// Probed is the type of the condition that probes bring on the pods that turn, and Follow how long it may take to
	// follow a turn.
	Probed string
	Follow time.Duration
	// Reconnect is how long after an outage of the API server programs may not know that it is over, if it was not started anew.
	Reconnect time.Duration
	// Least is what must have happened for the run to prove anything.
	Least Least
}

// Least load of a run.
type Least struct {
	Requests, Succeeded, Stops int
	// Denied are attempts of the daemon's token on another node that were refused.
	Denied int
	// Followed are turns that a condition has followed, Due those that it had the time to follow.
	Followed, Due int
	// Cancelled are jobs that were deleted after a pull of theirs had failed, before the next attempt.
	Cancelled int
	// RolledOut are RestartRollouts that have ended.
	RolledOut int
	// Triggered are RestartRollouts for changes of ConfigMaps.
	Triggered int
	// Updated and Refused are updates of files that a sidecar accepted, and that it refused.
	Updated, Refused int
	// SidecarUpdates are updates of pods by SidecarSets.
	SidecarUpdates int
	// Taken is what Refit has begun on pods of workloads that were watched.
	Taken int
	// Followers are updates of pods by InPlaceUpdatePolicies.
	Followers int
	// Faults by kind.
	Faults map[string]int
}

// Totals of a run.
type Totals struct {
	Requests, Succeeded, Failed, Deleted int
	// Stops are the containers the daemon stopped; Ends are the runs of containers that ended by it, as the
	// applications tell it; Orders are the pairs of request and container that a stop was for.
	Stops, Ends, Orders int
	// Repeated are StopContainer calls for an ID that had been called for before, as after a kill -9.
	Repeated int
	// Denied are attempts of the daemon's token that were refused.
	Denied int
	// Turns of applications; Followed are those that their condition followed before the next, and Slowest is how long
	// that took at most, not counting faults. Due are those that had to be followed: there was the time for it.
	Turns, Followed, Due int
	Slowest              time.Duration
	// Pulls are attempts of the daemon to pull an image. Cancelled are jobs that were deleted after an attempt of theirs had
	// failed: without the deletion others would have followed.
	Pulls, Cancelled int
	// Rollouts are RestartRollouts, RolledOut the ones that have ended.
	Rollouts, RolledOut int
	// Triggered are the rollouts for changes of ConfigMaps, Scheduled those for times of schedules.
	Triggered, Scheduled int
	// Updates of files that sidecars were asked for, Updated those that they accepted, Refused those that they did not.
	Updates, Updated, Refused int
	// SidecarUpdates are updates of pods by SidecarSets that were begun.
	SidecarUpdates int
	// Taken is what Refit has begun on pods of workloads that were watched, within a limit of who had it begun.
	Taken int
	// Followers are updates of pods by InPlaceUpdatePolicies that were begun, Templates the templates that all pods of a workload
	// got by them.
	Followers, Templates int
	Faults               map[string]int
	// Sampled are processes of ours that lived long enough for their growth to be judged.
	Sampled int
	// Lasted is the time from the begin of the first fault to the end of the last that is not the absence of Refit.
	Lasted time.Duration
	// Late is the result of the method Late, which the bounds of checks follow.
	Late time.Duration
}

// Report is the verdict.
type Report struct {
	Totals     Totals
	Violations []Violation
	// Refused says why the run proves nothing, whatever else is in the report; empty: it does.
	Refused []string
}

// OK reports whether the run was large enough and every promise was kept.
func (r Report) OK() bool { return len(r.Violations) == 0 && len(r.Refused) == 0 }

// Judgement is one under way.
type Judgement struct {
	*model.Model
	Options Options
	Report  Report
}

// Violate adds a violation.
func (j *Judgement) Violate(invariant, subject, what string, proof ...entry.Line) {
	proof = slices.Clone(proof)
	slices.SortStableFunc(proof, func(a, b entry.Line) int { return a.Time.Compare(b.Time) })
	j.Report.Violations = append(j.Report.Violations, Violation{Invariant: invariant, Subject: subject, What: what, Proof: proof})
}
