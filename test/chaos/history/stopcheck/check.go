package stopcheck

import (
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// Check adds what it finds to the judgement.
func Check(j *verdict.Judgement) {
	c := check{j}
	c.stops()        // I1, I2
	c.applications() // I1, I2
	c.wakes()        // I2
}

// check is the judgement as its checks here see it.
type check struct{ *verdict.Judgement }
