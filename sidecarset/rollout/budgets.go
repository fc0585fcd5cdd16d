package rollout

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/rollout/budget"
)

// Beside describes operations by others on the pods of a fleet. The zero value means that there are none.
type Beside struct {
	// Begun has the pods on which others have recently begun an operation that the pods may not show yet, and until when
	// each of them counts.
	Begun map[types.UID]time.Time
	// Gone is the workload of a pod that has been evicted for another reason and is not replaced yet; empty if there is
	// none.
	Gone string
	// Ending are pods that are being deleted for another reason than an eviction, or nil. They count in their workloads.
	Ending iter.Seq2[types.NamespacedName, Ending]
	// Doubtful maps namespaces in which no pod is evicted, because a replacement might not get the sidecars, to when
	// that ends.
	Doubtful map[string]time.Time
	// Disruptions returns the PodDisruptionBudgets of a namespace, or nil.
	Disruptions func(namespace string) *budget.Disruptions
}

// budgets says how many more pods may become unavailable, in all and of each workload.
type budgets struct {
	fleet    *Fleet
	strategy *Strategy
	beside   *Beside
	now      time.Time
	again    recheck.At // when there may be more
	limit    int        // for unavailable pods

	// out are the pods that are not available, and disturbed the ones among them that count against maxUnavailable.
	out, disturbed []*Pod
	all            *budget.Budget
	// exempt is the namespace whose pods no longer block other namespaces, see holding; empty if there is none. others
	// is the budget of the other namespaces.
	exempt      string
	others      *budget.Budget
	next        func(namespace string) time.Time // when another namespace may become exempt, for a pod of this namespace
	workloads   map[string]*workloadBudget
	unavailable map[string][]budget.Pod // by workload
	missing     map[string]int          // number of pods of a workload that are not in the fleet
	disruptions map[string]*budget.Disruptions
}

func (f *Fleet) budgets(s *Strategy, unavailable []*Pod, beside *Beside, now time.Time) *budgets {
	b := &budgets{
		fleet: f, strategy: s, beside: beside, now: now,
		workloads: map[string]*workloadBudget{}, unavailable: map[string][]budget.Pod{}, disruptions: map[string]*budget.Disruptions{},
	}
	var missing int
	missing, b.missing, b.again = f.missing(now)
	b.limit = s.maxUnavailable(f.counts.Matched + missing)
	if beside.Gone != "" {
		missing++
		b.missing[beside.Gone]++
	}
	b.ending()
	b.out = slices.Concat(unavailable, b.begun())
	for _, pod := range b.out {
		if pod.disturbed() || b.byOthers(pod) {
			b.disturbed = append(b.disturbed, pod)
		}
		if pod.Workload != "" {
			b.unavailable[pod.Workload] = append(b.unavailable[pod.Workload], b.view(pod))
		}
	}
	b.all = budget.New(b.limit, b.views(b.disturbed), 0, missing, nil)
	f.holding.note(b.disturbed, now)
	b.exempt, b.next = f.holding.exempt(b.disturbed, now), f.holding.next(b.disturbed, now)
	b.others = budget.New(b.limit, b.views(f.holding.without(b.disturbed, b.exempt, now)), 0, missing, nil)
	return b
}

// ending counts the pods that are being deleted and are not counted as evicted, until their time limit.
func (b *budgets) ending() {
	if b.beside.Ending == nil {
		return
	}
	for key, pod := range b.beside.Ending {
		if b.now.Before(pod.Until) && b.fleet.evicted[key].uid != pod.UID {
			b.missing[pod.Workload]++
			b.again = b.again.Or(pod.Until)
		}
	}
}

func (b *budgets) views(pods []*Pod) []budget.Pod {
	views := make([]budget.Pod, len(pods))
	for i, pod := range pods {
		views[i] = b.view(pod)
	}
	return views
}

// overall returns the budget of all workloads for a pod of a namespace.
func (b *budgets) overall(namespace string) *budget.Budget {
	if namespace == b.exempt {
		return b.all
	}
	return b.others
}

// begun returns the pods that are available except for operations that others have begun on them.
func (b *budgets) begun() (pods []*Pod) {
	for uid, until := range b.beside.Begun {
		key, ok := b.fleet.uids[uid]
		if !ok {
			continue
		}
		b.again = b.again.Or(until)
		if b.fleet.unsettled[key] == nil {
			pods = append(pods, b.fleet.pods[key])
		}
	}
	return pods
}

// view returns a pod as budgets see it.
func (b *budgets) view(pod *Pod) budget.Pod {
	at, ready := pod.availableAt(b.strategy.MinReady)
	p := budget.Pod{Name: pod.Key.Name, Labels: pod.Labels, Ready: pod.Ready, Stuck: pod.Stuck, UnderWay: b.underWay(pod)}
	p.Available = ready && !b.now.Before(at) && !p.UnderWay
	return p
}

func (b *budgets) underWay(pod *Pod) bool {
	return pod.InFlight || b.byOthers(pod)
}

// byOthers reports whether an operation on the pod is in progress that this SidecarSet has not begun, or the pod
// replaces an evicted one.
func (b *budgets) byOthers(pod *Pod) bool {
	return pod.UnderWay || b.fleet.starting(pod) || !b.beside.Begun[pod.UID].IsZero()
}

// workloadBudget says how many more pods of a workload may become unavailable.
type workloadBudget struct {
	// all counts every pod that is not available, against maxUnavailablePerWorkload.
	all *budget.Budget
	// recovering counts the pods that are expected to become available by themselves, against maxUnavailable. These
	// include pods that were created to replace others, even if this replica of refit-manager does not know of the
	// eviction. They only count for their own workload: otherwise the owner of one pod could block the rollout of all
	// workloads.
	recovering *budget.Budget
}

func (w *workloadBudget) allows(pod *budget.Pod) bool {
	return w == nil || w.all.Allows(pod) && w.recovering.Allows(pod)
}

func (w *workloadBudget) take(pod *budget.Pod) {
	if w != nil {
		w.all.Take(pod)
		w.recovering.Take(pod)
	}
}

// of returns the budget of a workload, or nil for a pod without a workload.
func (b *budgets) of(workload string) *workloadBudget {
	if workload == "" {
		return nil
	}
	if b.workloads[workload] == nil {
		missing, unavailable := b.missing[workload], b.unavailable[workload]
		total := b.fleet.workloads[workload] + missing
		recovering := slices.DeleteFunc(slices.Clone(unavailable), func(pod budget.Pod) bool { return pod.Stuck && !pod.UnderWay })
		b.workloads[workload] = &workloadBudget{
			all:        budget.New(b.strategy.workloadMaxUnavailable(total), unavailable, 0, missing, nil),
			recovering: budget.New(b.limit, recovering, 0, missing, nil),
		}
	}
	return b.workloads[workload]
}

// in returns the PodDisruptionBudgets of a namespace, or nil if there are none.
func (b *budgets) in(namespace string) *budget.Disruptions {
	if b.beside.Disruptions == nil {
		return nil
	}
	disruptions, asked := b.disruptions[namespace]
	if !asked {
		disruptions = b.beside.Disruptions(namespace)
		b.disruptions[namespace] = disruptions
	}
	return disruptions
}

// take selects pods in order until the allowed number is reached.
func (b *budgets) take(pods []*Pod, allowed int) Selection {
	var selection Selection
	hold := func(reason Hold, pod *Pod) {
		if selection.Held == "" {
			selection.Held, selection.Holders = reason, b.holders(reason, pod)
		}
	}
	for _, pod := range pods {
		if len(selection.Pods) >= allowed {
			hold(HoldPartition, pod)
			break
		}
		reason, by := b.one(pod)
		if reason == "" {
			selection.Pods = append(selection.Pods, pod.Key)
			continue
		}
		hold(reason, pod)
		if by != "" && selection.Disruption == "" {
			selection.Disruption = pod.Key.Namespace + "/" + by
		}
	}
	return selection
}

// one selects a pod if the budgets allow it. by is the PodDisruptionBudget that does not allow it.
func (b *budgets) one(pod *Pod) (hold Hold, by string) {
	if pod.InFlight {
		return "", "" // it counts already, and the newest spec may repair it
	}
	p, workload := b.view(pod), b.of(pod.Workload)
	counted := p
	if !pod.disturbed() && !p.UnderWay {
		counted.Available = true // so far it has not been counted in all
	}
	switch {
	case !b.overall(pod.Key.Namespace).Allows(&counted):
		b.again = b.again.Or(b.next(pod.Key.Namespace))
		return HoldUnavailable, ""
	case !workload.allows(&p):
		return HoldWorkload, ""
	}
	if pod.Stops {
		if by := b.in(pod.Key.Namespace).Take(&p); by != "" {
			return HoldDisruption, by
		}
	}
	b.all.Take(&counted) // unless it is already full
	b.others.Take(&counted)
	workload.take(&p)
	return "", ""
}
