package stopcheck

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// startError is containerd's reason for a container that it could not start to the end.
const startError = "StartError"

// applications checks what the containers saw: one TERM in each life, and no end without a stop that explains it.
func (c check) applications() {
	stops := map[[2]string][]model.Stop{} // by pod UID and container
	for _, s := range c.StopsByID() {
		if known := c.Containers[s.ID]; known != nil {
			key := [2]string{known.PodUID, known.Name}
			stops[key] = append(stops[key], s)
		}
	}
	for _, p := range c.Pods {
		for name, instances := range p.Instances {
			left := slices.Clone(stops[[2]string{p.UID, name}])
			for _, i := range instances {
				c.terms(p, name, i)
				left = c.explain(p, name, i, left)
			}
		}
	}
}

// terms allows a second TERM only after containerd of that node has restarted, as it then does not know of the first.
func (c check) terms(p *model.Pod, name string, i *model.Instance) {
	for n := 1; n < len(i.Terms); n++ {
		before, after := i.Terms[n-1], i.Terms[n]
		if p.Deleted != nil && after.Time.After(p.Deleted.Received) {
			return
		}
		forgotten := slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
			return f.Kind == entry.KindRuntimeRestart && f.On(p.Node()) && f.End.After(before.Time) && f.Begin.Before(after.Time)
		})
		if !forgotten {
			c.Violate("I1", fmt.Sprintf("container %s of pod %s", name, p.UID), fmt.Sprintf("one instance got TERM %d times", n+1),
				i.Start.Line, before.Line, after.Line)
		}
	}
}

// startCancelled reports whether the runtime ended the instance while it was starting it: kubelet, on whose behalf it did,
// was killed at that time, and says so when it is back. The program may have come to its first line by then. What we
// have called the runtime about is not excused.
func (c check) startCancelled(p *model.Pod, name string, i *model.Instance) bool {
	if len(i.Terms) > 0 || i.Exit != nil {
		return false
	}
	killed := slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindKubeletRestart && f.On(p.Node()) && f.Overlaps(i.Start.Time.Add(-verdict.Noticed), i.Start.Time.Add(verdict.Noticed))
	})
	called := func(id string) bool {
		return slices.ContainsFunc(c.Calls, func(call entry.Call) bool { return call.Changes() && call.ContainerID == entry.BareID(id) })
	}
	cancelled := func(end *corev1.ContainerStateTerminated) bool {
		return end != nil && end.Reason == startError && i.Start.Time.Sub(end.FinishedAt.Time).Abs() <= verdict.Noticed &&
			killed && !called(end.ContainerID)
	}
	return slices.ContainsFunc(p.Statuses, func(w entry.Write) bool {
		return slices.ContainsFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == name && (cancelled(s.State.Terminated) || cancelled(s.LastTerminationState.Terminated))
		})
	})
}

// lost reports whether the instance ended with its node.
func (c check) lost(p *model.Pod, i *model.Instance) bool {
	return i.Exit == nil && slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindNodeLost && f.On(p.Node()) && f.Overlaps(i.Start.Time, i.End(c.End))
	})
}

// explain takes the stop that ended an instance out of the list. An end needs no stop when the program ended by
// itself, its start was cancelled, its node was lost, or the pod was deleted.
func (c check) explain(p *model.Pod, name string, i *model.Instance, left []model.Stop) []model.Stop {
	crashed := i.Exit != nil && i.Exit.Reason == entry.ExitCrash && len(i.Terms) == 0
	over := i.Exit != nil || i.Next != nil || len(i.Terms) > 0
	if crashed || !over || c.startCancelled(p, name, i) || c.lost(p, i) {
		return left
	}
	first := i.End(c.End)
	if len(i.Terms) > 0 {
		first = i.Terms[0].Time
	}
	if p.Deleted != nil && !first.Before(p.Deleted.Received) {
		return left
	}
	match := slices.IndexFunc(left, func(s model.Stop) bool {
		return slices.ContainsFunc(s.Calls, func(call entry.Call) bool {
			return !call.Begin.After(first.Add(verdict.Noticed)) && !call.End.Before(i.Start.Time.Add(-verdict.Noticed))
		})
	})
	if match < 0 {
		proof := []entry.Line{i.Start.Line}
		for _, term := range i.Terms {
			proof = append(proof, term.Line)
		}
		if i.Next != nil {
			proof = append(proof, i.Next.Line)
		}
		c.Violate("I1", fmt.Sprintf("container %s of pod %s", name, p.UID), "an instance was ended that no stop of its own explains", proof...)
		return left
	}
	c.Report.Totals.Ends++
	return slices.Delete(slices.Clone(left), match, match+1)
}
