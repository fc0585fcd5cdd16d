package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// mostHolders limits how many pods a message names.
const mostHolders = 3

// holders names the pods that are counted as unavailable when another pod is held, as namespace/name: first those that have
// been counted for the longest time.
func (b *budgets) holders(hold Hold, held *Pod) string {
	var pods []*Pod
	switch hold {
	case HoldUnavailable:
		pods = slices.Clone(b.disturbed)
		if held.Key.Namespace != b.exempt {
			pods = b.fleet.holding.without(pods, b.exempt, b.now)
		}
	case HoldWorkload:
		for _, pod := range b.out {
			if pod.Workload == held.Workload {
				pods = append(pods, pod)
			}
		}
	}
	since := func(pod *Pod) time.Time {
		if at, counted := b.fleet.holding[pod.UID]; counted {
			return at
		}
		return b.now
	}
	slices.SortFunc(pods, func(p, q *Pod) int {
		return cmp.Or(since(p).Compare(since(q)), strings.Compare(p.Key.String(), q.Key.String()))
	})
	var names []string
	for _, pod := range pods[:min(len(pods), mostHolders)] {
		names = append(names, pod.Key.String())
	}
	if more := len(pods) - mostHolders; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
