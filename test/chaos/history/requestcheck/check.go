package requestcheck

import (
	"time"

	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// Check adds what it finds to the judgement.
func Check(j *verdict.Judgement) {
	c := check{j, j.Report.Totals.Late}
	c.terminal() // I3
	c.success()  // I4
	c.ends()     // I5
	c.order()    // I6
	c.verdicts() // failures
}

// check is the judgement as its checks here see it.
type check struct {
	*verdict.Judgement
	late time.Duration // see Late
}
