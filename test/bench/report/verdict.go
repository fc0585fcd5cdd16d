package report

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
)

// Verdict compares one figure with its target.
type Verdict struct {
	// About is what was measured: "40 at once".
	About  string `json:"about"`
	What   string `json:"what"`
	Target string `json:"target"`
	Found  string `json:"found"`
	Met    bool   `json:"met"`
}

// AtMost is the verdict on a figure that should be no larger than most.
func AtMost[T cmp.Ordered](what string, found, most T, text func(T) string) Verdict {
	return Verdict{What: what, Target: "<= " + text(most), Found: text(found), Met: found <= most}
}

// None is the verdict on a number that should be 0.
func None(what string, found int) Verdict {
	return Verdict{What: what, Target: "0", Found: fmt.Sprint(found), Met: found == 0}
}

// Verdicts are all verdicts of a run, in the order of the report.
type Verdicts []Verdict

// Add adds the verdicts about one thing.
func (v *Verdicts) Add(about string, all ...Verdict) {
	for _, one := range all {
		one.About = about
		*v = append(*v, one)
	}
}

// Print prints them as a table; nothing if there are none.
func (v Verdicts) Print(out io.Writer) error {
	if len(v) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "target\t\t\tfound\t")
	for _, one := range v {
		outcome := "met"
		if !one.Met {
			outcome = "MISSED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", one.About, one.What, one.Target, one.Found, outcome)
	}
	return table.Flush()
}
