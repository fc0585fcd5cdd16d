package turn

import (
	"cmp"
	"slices"
	"strings"

	"github.com/refit-project/refit/rollout/budget"
)

// Step is what a process has to do next.
type Step string

// The steps.
const (
	// Wait means to renew the claim and check again later.
	Wait Step = "Wait"
	// Hold means to write that the process holds its turn, and to check again.
	Hold Step = "Hold"
	// Go means to make the pod unavailable. The claim is removed together with, or after, the write of the record of
	// the update.
	Go Step = "Go"
	// Retreat means to write that the process waits, and to check again later.
	Retreat Step = "Retreat"
)

// Pod is a pod of the workload.
type Pod struct {
	// Pod is the pod as budgets see it; the own pod without its claim.
	budget.Pod
	// Claim is the unexpired claim on the pod, or nil.
	Claim *budget.Claim
}

// Observation is what has been read after the last write of the process.
type Observation struct {
	// Own is the index of the process's pod, which carries its claim.
	Own  int
	Pods []Pod
	// Limit is how many pods may be unavailable, and Missing how many pods the workload lacks, see [budget.New].
	Limit, Missing int
	// Disruptions returns what PodDisruptionBudgets allow. It returns nil if they are ignored.
	Disruptions func() *budget.Disruptions
}

// Decision is the result of Next.
type Decision struct {
	Step Step
	// Hold is why the process has to wait. By is the PodDisruptionBudget that does not allow the disruption.
	Hold budget.Hold
	By   string
}

// Next returns what a process that has written a claim on its pod has to do.
func Next(o Observation) Decision {
	own := &o.Pods[o.Own]
	if own.Claim == nil { // it has expired, or somebody has removed it
		return Decision{Step: Retreat}
	}
	o.resume()
	free := o.budget()
	if !own.Claim.Holding {
		for _, p := range o.before() {
			free.Take(&p.Pod) // ignore the result: if it is allowed, it comes first
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

// resume prefers one abandoned update over other abandoned ones whose processes wait for their turn, because nothing
// happens to their pods before that. All these pods count as being changed, so the processes would wait for each other.
// Pods that do not serve come first.
func (o *Observation) resume() {
	own := o.Pods[o.Own]
	if !own.Left {
		return
	}
	o.Pods = slices.Clone(o.Pods)
	for i := range o.Pods {
		p := &o.Pods[i]
		waits := i != o.Own && p.Left && p.Claim != nil && !p.Claim.Holding
		if waits && (own.Ready == p.Ready && order(&own, p) < 0 || !own.Ready && p.Ready) {
			p.UnderWay, p.Available = false, p.Ready
		}
	}
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

// before returns the pods of the processes that have waited longer, in order.
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
