package history

import (
	"fmt"
	"slices"
	"time"
)

// Violation is a promise that was not kept.
type Violation struct {
	Invariant string // I1 ..., crash, grace, verdict or volume
	Subject   string // the request or container
	What      string
	Proof     []Line
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
	// Daemon is the user name of the daemon in the audit log, Manager that of the manager.
	Daemon, Manager string
	// Patience is how long a request may take from its turn on, beside the times it asks for itself.
	Patience time.Duration
	// Probed is the type of the condition that probes bring on the pods that turn, and Follow how long it may take to
	// follow a turn.
	Probed string
	Follow time.Duration
	// Least is what must have happened for the run to prove anything.
	Least Least
}

// Least load of a run.
type Least struct {
	Requests, Succeeded, Stops int
	// Denied are attempts of the daemon's token on another node that were refused.
	Denied int
	// Followed are turns that a condition has followed.
	Followed int
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
	// that took at most, not counting faults.
	Turns, Followed int
	Slowest         time.Duration
	Faults          map[string]int
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

// Check judges a run.
func Check(records Records, options Options) Report {
	c := &checker{model: newModel(records), options: options}
	c.report.Totals.Faults = map[string]int{}
	for _, fault := range records.Faults {
		c.report.Totals.Faults[fault.Kind]++
	}
	c.stops()        // I1, I2
	c.applications() // I1, I2
	c.wakes()        // I2
	c.terminal()     // I3
	c.success()      // I4
	c.ends()         // I5
	c.order()        // I6
	c.verdicts()     // failures
	c.probes()       // I8
	c.nodes()        // I11
	c.absence()      // I12
	c.crashes()
	c.volume()
	c.count()
	c.load()
	return c.report
}

type checker struct {
	*model
	options Options
	report  Report
}

func (c *checker) violate(invariant, subject, what string, proof ...Line) {
	proof = slices.Clone(proof)
	slices.SortStableFunc(proof, func(a, b Line) int { return a.Time.Compare(b.Time) })
	c.report.Violations = append(c.report.Violations, Violation{Invariant: invariant, Subject: subject, What: what, Proof: proof})
}

func (c *checker) count() {
	totals := &c.report.Totals
	totals.Turns = len(c.Turns)
	for _, r := range c.requests {
		totals.Requests++
		switch terminal := r.terminal(); {
		case terminal == nil && r.deleted != nil:
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
func (c *checker) load() {
	totals, least := c.report.Totals, c.options.Least
	refuse := func(what string, got, want int) {
		if got < want {
			c.report.Refused = append(c.report.Refused, fmt.Sprintf("%s: %d, want at least %d", what, got, want))
		}
	}
	refuse("requests", totals.Requests, least.Requests)
	refuse("succeeded requests", totals.Succeeded, least.Succeeded)
	refuse("stopped containers", totals.Stops, least.Stops)
	refuse("followed turns", totals.Followed, least.Followed)
	refuse("refused writes to another node", totals.Denied, least.Denied)
	for kind, want := range least.Faults {
		refuse("faults "+kind, totals.Faults[kind], want)
	}
	slices.Sort(c.report.Refused)
	if kills := totals.Faults[KindAPIServerKill]; c.Broken > kills {
		c.report.Refused = append(c.report.Refused,
			fmt.Sprintf("audit log: %d broken lines, but the API server was killed %d times", c.Broken, kills))
	}
}
