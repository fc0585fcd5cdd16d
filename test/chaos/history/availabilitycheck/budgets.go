package availabilitycheck

import (
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// budget is a PodDisruptionBudget with all of its versions, in the order in which a client saw them.
type budget struct {
	namespace, name string
	versions        []entry.Watched
}

// budgets checks I20. The status of a budget is written some time after the pods have changed, and nothing reserves a disruption for who
// has read it: so two who begin at once may both be right, and a budget counts as one that allows nothing only when it has done so
// for some time, and the pods as they are say the same.
func (c *check) budgets() {
	for _, b := range c.collectBudgets() {
		for _, w := range c.all {
			if w.namespace != b.namespace {
				continue
			}
			for _, t := range w.takes {
				if t.most > 0 && !t.lost && !t.ignoresBudgets && !t.evicts && !w.takenBefore(t) {
					c.allowed(w, b, t)
				}
			}
		}
	}
}

func (c *check) collectBudgets() []*budget {
	byName := map[[2]string]*budget{}
	var all []*budget
	for _, w := range c.Watched {
		if w.Budget == nil {
			continue
		}
		key := [2]string{w.Budget.Namespace, w.Budget.Name}
		if byName[key] == nil {
			byName[key] = &budget{namespace: key[0], name: key[1]}
			all = append(all, byName[key])
		}
		byName[key].versions = append(byName[key].versions, w)
	}
	return all
}

// allowed checks a take against a budget.
func (c *check) allowed(w *workload, b *budget, t *take) {
	since := t.begun.at.Add(-settled)
	stale := slices.ContainsFunc(c.Watched, func(e entry.Watched) bool {
		return e.Event == entry.WatchLost && e.Kind == entry.KindBudget && e.At.After(since.Add(-settled)) && e.At.Before(t.begun.at.Add(settled))
	})
	if stale || c.blind(t.begun.at) || t.pod.doubtful(t.begun) {
		return
	}
	always, never := t.pod.serves(since, t.begun)
	var current []*entry.Watched // the versions of that time
	for i := range b.versions {
		v := &b.versions[i]
		if !(moment{entry.Revision(v.Budget.ResourceVersion), v.At}).before(t.begun) {
			break
		}
		if v.At.Before(since) {
			current = current[:0]
		}
		current = append(current, v)
	}
	allows := func(v *entry.Watched) bool { return !forbids(v, t.pod, always, never) }
	if len(current) == 0 || !current[0].At.Before(since) || slices.ContainsFunc(current, allows) {
		return
	}
	last := current[len(current)-1]
	if w.healthyEnough(last.Budget, t) {
		return
	}
	c.Violate("I20", "workload "+w.String(), fmt.Sprintf("pod %s was taken by %s, and PodDisruptionBudget %s allows nothing", t.pod.Name, t.by, b.name), last.Line, t.line)
}

// forbids reports whether this version of the budget allows nothing to happen to the pod. A pod that is not ready may be disrupted if
// enough others are healthy, as the Eviction API has it.
func forbids(v *entry.Watched, p *pod, always, never bool) bool {
	b := v.Budget
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if v.Event == entry.WatchDeleted || err != nil || !selector.Matches(labels.Set(p.versions[0].Pod.Labels)) || b.Status.ObservedGeneration < b.Generation {
		return false
	}
	if b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow && !always {
		return false
	}
	if never {
		return b.Status.CurrentHealthy < b.Status.DesiredHealthy
	}
	return b.Status.DisruptionsAllowed == 0
}

// healthyEnough reports whether enough pods may have been healthy at the begin of the take, beside its own.
func (w *workload) healthyEnough(b *policyv1.PodDisruptionBudget, t *take) bool {
	healthy := 0
	for _, p := range w.pods {
		_, never := p.serves(t.begun.at.Add(-settled), t.begun)
		if p != t.pod && !never && p.present(t.begun) {
			healthy++
		}
	}
	return healthy >= int(b.Status.DesiredHealthy)
}
