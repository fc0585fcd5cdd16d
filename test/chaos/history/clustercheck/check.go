package clustercheck

import (
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// Check adds what it finds to the judgement.
func Check(j *verdict.Judgement) {
	c := check{j}
	c.probes()  // I8
	c.pulls()   // I9
	c.nodes()   // I11
	c.absence() // I12
	c.crashes()
	c.admission()
	c.refused()
	c.throttled()
	c.leaks()
	c.volume()
	c.busy()
}

// check is the judgement as its checks here see it.
type check struct{ *verdict.Judgement }
