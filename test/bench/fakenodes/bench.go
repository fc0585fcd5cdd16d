package fakenodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const (
	limit = 20 * time.Minute // for one step, on a slow machine
	// calm is how long nothing may be written until a step counts as over; a status comes after a second.
	calm = 2500 * time.Millisecond
)

// Bench measures what changes cost a refit-manager.
type Bench struct {
	Nodes, Pods int
	Quiet       time.Duration // how long nothing is changed to see that nothing is written
	Cluster     *Cluster
	Kwok        *Process
	Manager     *Manager
	Steps       []Step
	Flips       []Flip

	bin, stages string
	began       time.Time
}

// Say prints a line with the seconds since the first one.
func (b *Bench) Say(format string, args ...any) {
	if b.began.IsZero() {
		b.began = time.Now()
	}
	fmt.Printf("[%6.1fs] %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// Step is one change and what the manager did for it.
type Step struct {
	Name string `json:"name"`
	// Changes are the objects that cannot be as they are after it without a write each; Writes those that there were,
	// Events and statuses among them.
	Changes int `json:"changes"`
	Writes  int `json:"apiWrites"`
	Reads   int `json:"apiReads"`
	// Given is how long the benchmark took to bring the change about, Converged how long until all was as it is to be;
	// both from the begin.
	Given     time.Duration `json:"givenNanoseconds"`
	Converged time.Duration `json:"convergedNanoseconds"`
	CPU       time.Duration `json:"managerCPUNanoseconds"`
	RSS       uint64        `json:"managerRSSBytes"`
	PeakRSS   uint64        `json:"managerPeakRSSBytes"`
	RSSAnon   uint64        `json:"managerRSSAnonBytes"`
}

// Step measures one change from its begin to the last write for it.
func (b *Bench) Step(ctx context.Context, name string, changes int, do func(context.Context) error, done func(context.Context) (bool, error)) error {
	before, err := b.Manager.Read(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(ctx); err != nil {
		return err
	}
	given := time.Since(began)
	if done != nil {
		err := testcluster.Await(ctx, testcluster.PollInterval, limit, "what follows", func(ctx context.Context) (bool, error) {
			if err := errors.Join(b.Kwok.Alive(), b.Manager.Alive()); err != nil {
				return false, err
			}
			return done(ctx)
		})
		if err != nil {
			return err
		}
	}
	converged := time.Since(began)
	after, err := b.settled(ctx)
	if err != nil {
		return err
	}
	s := Step{
		Name: name, Changes: changes, Writes: after.Writes - before.Writes, Reads: after.Reads - before.Reads,
		Given: given, Converged: converged, CPU: after.CPU - before.CPU, RSS: after.RSS, PeakRSS: after.Peak, RSSAnon: after.Anonymous,
	}
	if after.CPU < before.CPU { // another process since
		s.Writes, s.Reads, s.CPU = after.Writes, after.Reads, after.CPU
	}
	b.Steps = append(b.Steps, s)
	b.Say("%s: %d writes for %d changes in %s", s.Name, s.Writes, s.Changes, report.Duration(s.Converged))
	return nil
}

// settled waits until the manager has nothing left to write.
func (b *Bench) settled(ctx context.Context) (Reading, error) {
	for {
		before, err := b.Manager.Read(ctx)
		if err != nil {
			return before, err
		}
		if err := wait.For(ctx, calm); err != nil {
			return before, err
		}
		after, err := b.Manager.Read(ctx)
		if err != nil || after.Writes == before.Writes {
			return after, err
		}
	}
}

// Print prints the steps as a table.
func Print(out io.Writer, steps []Step) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "step\tchanges\twrites\tratio\treads\tgiven\tconverged\tCPU\tRSS\tanonymous\tpeak\t")
	for i := range steps {
		s := &steps[i]
		ratio := "-"
		if s.Changes > 0 {
			ratio = fmt.Sprintf("%.3f", s.Ratio())
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Name, s.Changes, s.Writes, ratio, s.Reads,
			report.Duration(s.Given), report.Duration(s.Converged), report.Duration(s.CPU), report.Bytes(s.RSS), report.Bytes(s.RSSAnon), report.Bytes(s.PeakRSS))
	}
	return table.Flush()
}

// Ratio of writes to changes; 0 without changes.
func (s *Step) Ratio() float64 {
	if s.Changes == 0 {
		return 0
	}
	return float64(s.Writes) / float64(s.Changes)
}

// Figures are what is compared between runs.
func Figures(steps []Step) []report.Figure {
	var all []report.Figure
	for i := range steps {
		s := &steps[i]
		all = append(all,
			report.Figure{Name: s.Name + "/converged", Unit: "ns/op", Value: float64(s.Converged), Floor: float64(s.Given)},
			report.Figure{Name: s.Name + "/RssAnon", Unit: "B", Value: float64(s.RSSAnon)},
			report.Figure{Name: s.Name + "/peak RSS", Unit: "B", Value: float64(s.PeakRSS)})
		if s.Changes > 0 {
			all = append(all, report.Figure{Name: s.Name + "/writes", Unit: "writes/change", Value: s.Ratio()})
		}
	}
	return all
}
