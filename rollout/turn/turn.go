package turn

import (
	"cmp"
	"slices"
	"strings"

	"github.com/refit-project/refit/rollout/budget"
)

// Step is what a process has to do.
type Step string

// The steps.
const (
	// Wait: renew the claim and look again later.
	Wait Step = "Wait"
	// Hold: write that the process holds its turn, and look again.
	Hold Step = "Hold"
	// Go: take the pod out. The claim is removed when the record of the update is written, or with it.
	Go Step = "Go"
	// Retreat: write that the process waits, and look again later.
	Retreat Step = "Retreat"
)

// Pod is a pod of the workload.
type Pod struct {
	// Pod as budgets see it; the own one without its claim.
	budget.Pod
	// Claim on it that has not ended; nil for none.
	Claim *budget.Claim
}

// Observation is what has been read after the last write of the process.
type Observation struct {
	// Own is the index of the pod of the process, whose claim is that of the process.
	Own  int
	Pods []Pod
	// Limit is how many pods may be unavailable, Missing how many the workload lacks, see [budget.New].
	Limit, Missing int
	// Disruptions returns what PodDisruptionBudgets allow; nil if they are not to be asked.
	Disruptions func() *budget.Disruptions
}

// Decision is what Next answers.
type Decision struct {
	Step Step
	// Hold is why the process has to wait, and By the PodDisruptionBudget if that is why.
	Hold budget.Hold
	By   string
}

// Next says what a process has to do that has written a claim on its pod.
func Next(o Observation) Decision {
	own := &o.Pods[o.Own]
	free := o.budget()
	if own.Claim == nil { // it has ended, or somebody has removed it
		return Decision{Step: Retreat}
	}
	if !own.Claim.Holding {
		for _, p := range o.before() {
			free.Take(&p.Pod) // whether it is allowed or not: if it is, it goes first
		}
	}
	hold, by := free.Take(&own.Pod)
	switch {
	case hold == "" && own.Claim.Holding:
		return Decision{Step: Go}
	case hold == "":
		return Decision{Step: Hold}
	case own.Claim.Holding:
		return Decision{Step: Retreat, Hold: hold, By: by}
	}
	return Decision{Step: Wait, Hold: hold, By: by}
}

func (o *Observation) budget() *budget.Budget {
	pods := make([]budget.Pod, len(o.Pods))
	for i := range o.Pods {
		pods[i] = o.Pods[i].Pod
	}
	var disruptions *budget.Disruptions
	if o.Disruptions != nil {
		disruptions = o.Disruptions()
	}
	return budget.New(o.Limit, pods, o.Missing, 0, disruptions)
}

// before are the pods of those that have waited for longer, in order.
func (o *Observation) before() []*Pod {
	own := &o.Pods[o.Own]
	var before []*Pod
	for i := range o.Pods {
		p := &o.Pods[i]
		if i != o.Own && p.Claim != nil && !p.Claim.Holding && order(p, own) < 0 {
			before = append(before, p)
		}
	}
	slices.SortFunc(before, order)
	return before
}

func order(a, b *Pod) int {
	return cmp.Or(a.Claim.Since.Compare(b.Claim.Since.Time), strings.Compare(a.Name, b.Name))
}
