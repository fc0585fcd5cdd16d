package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/rollout/budget"
)

// Beside is what others do to the pods of a fleet. The zero value says that they do nothing.
type Beside struct {
	// Begun are pods on which others have begun something lately, and until when that counts: the pods may not show it yet.
	Begun map[types.UID]time.Time
	// Gone is the workload of a pod that has been evicted for another reason and is not replaced; empty if none is.
	Gone string
	// Disruptions are the PodDisruptionBudgets of a namespace; nil for none.
	Disruptions func(namespace string) *budget.Disruptions
}

// budgets are how many more pods may become unavailable, in all and of each workload.
type budgets struct {
	fleet    *Fleet
	strategy *Strategy
	beside   *Beside
	now      time.Time
	again    time.Time // when there may be more without another change; zero for never

	all         *budget.Budget
	workloads   map[string]*budget.Budget
	unavailable map[string][]budget.Pod // by workload
	missing     map[string]int          // pods of a workload that are not in the fleet
	disruptions map[string]*budget.Disruptions
}

func (f *Fleet) budgets(s *Strategy, unavailable []*Pod, beside *Beside, now time.Time) *budgets {
	if beside == nil {
		beside = &Beside{}
	}
	b := &budgets{
		fleet: f, strategy: s, beside: beside, now: now,
		workloads: map[string]*budget.Budget{}, unavailable: map[string][]budget.Pod{}, disruptions: map[string]*budget.Disruptions{},
	}
	var missing int
	missing, b.missing, b.again = f.missing(now)
	limit := s.maxUnavailable(f.counts.Matched + missing)
	if beside.Gone != "" {
		missing++
		b.missing[beside.Gone]++
	}
	var disturbed []budget.Pod
	for _, pod := range append(unavailable, b.begun()...) {
		view := b.view(pod)
		if pod.disturbed() || b.byOthers(pod) {
			disturbed = append(disturbed, view)
		}
		if pod.Workload != "" {
			b.unavailable[pod.Workload] = append(b.unavailable[pod.Workload], view)
		}
	}
	b.all = budget.New(limit, disturbed, 0, missing, nil)
	return b
}

// begun are the pods that are available but for what others have begun on them.
func (b *budgets) begun() (pods []*Pod) {
	for uid, until := range b.beside.Begun {
		key, ok := b.fleet.uids[uid]
		if !ok {
			continue
		}
		b.again = Earliest(b.again, until)
		if b.fleet.unsettled[key] == nil {
			pods = append(pods, b.fleet.pods[key])
		}
	}
	return pods
}

// view is a pod as budgets see it.
func (b *budgets) view(pod *Pod) budget.Pod {
	at, ready := pod.availableAt(b.strategy.MinReady)
	p := budget.Pod{Name: pod.Key.Name, Labels: pod.Labels, Ready: pod.Ready, Stuck: pod.Stuck, UnderWay: b.underWay(pod)}
	p.Available = ready && !b.now.Before(at) && !p.UnderWay
	return p
}

func (b *budgets) underWay(pod *Pod) bool {
	return pod.InFlight || b.byOthers(pod)
}

// byOthers reports whether something is under way on the pod that this SidecarSet has not begun, or that it has evicted another for.
func (b *budgets) byOthers(pod *Pod) bool {
	return pod.UnderWay || b.fleet.starting(pod) || !b.beside.Begun[pod.UID].IsZero()
}

// of is the budget of a workload; nil for a pod without one.
func (b *budgets) of(workload string) *budget.Budget {
	if workload == "" {
		return nil
	}
	if b.workloads[workload] == nil {
		missing := b.missing[workload]
		limit := b.strategy.workloadMaxUnavailable(b.fleet.workloads[workload] + missing)
		b.workloads[workload] = budget.New(limit, b.unavailable[workload], 0, missing, nil)
	}
	return b.workloads[workload]
}

// in are the PodDisruptionBudgets of a namespace; nil if there are none.
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

// take goes through the pods in order until as many are taken as are allowed.
func (b *budgets) take(pods []*Pod, allowed int) Selection {
	var selection Selection
	hold := func(reason Hold) {
		if selection.Held == "" {
			selection.Held = reason
		}
	}
	for _, pod := range pods {
		if len(selection.Pods) >= allowed {
			hold(HoldPartition)
			break
		}
		reason, by := b.one(pod)
		if reason == "" {
			selection.Pods = append(selection.Pods, pod.Key)
			continue
		}
		hold(reason)
		if by != "" && selection.Disruption == "" {
			selection.Disruption = pod.Key.Namespace + "/" + by
		}
	}
	return selection
}

// one takes a pod, if it may be. By is the PodDisruptionBudget that does not allow it.
func (b *budgets) one(pod *Pod) (hold Hold, by string) {
	if pod.InFlight {
		return "", "" // it counts already, and the newest spec may repair it
	}
	p, workload := b.view(pod), b.of(pod.Workload)
	counted := p
	if !pod.disturbed() && !p.UnderWay {
		counted.Available = true // until now it has not been counted in all
	}
	switch {
	case !b.all.Allows(&counted):
		return HoldUnavailable, ""
	case workload != nil && !workload.Allows(&p):
		return HoldWorkload, ""
	}
	if pod.Stops {
		if by := b.in(pod.Key.Namespace).Take(&p); by != "" {
			return HoldDisruption, by
		}
	}
	b.all.Take(&counted)
	if workload != nil {
		workload.Take(&p)
	}
	return "", ""
}
