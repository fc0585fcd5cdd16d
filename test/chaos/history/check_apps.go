package history

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// noticed is how far apart the proxy's word on a stop and the application's may lie: both are of one machine's
// clock, but an application that is starting or ending writes a little late.
const noticed = time.Second

// startError is containerd's reason for a container that it could not start to the end.
const startError = "StartError"

// applications checks what the containers saw: one TERM in each life, and no end without a stop that explains it.
func (c *checker) applications() {
	stops := map[[2]string][]stop{} // by pod UID and container
	for _, s := range c.stopsByID() {
		if known := c.containers[s.id]; known != nil {
			key := [2]string{known.podUID, known.name}
			stops[key] = append(stops[key], s)
		}
	}
	for _, p := range c.pods {
		for name, instances := range p.instances {
			left := slices.Clone(stops[[2]string{p.uid, name}])
			for _, i := range instances {
				c.terms(p, name, i)
				left = c.explain(p, name, i, left)
			}
		}
	}
}

// terms allows a second TERM only after containerd of that node has restarted, as it then does not know of the first.
func (c *checker) terms(p *pod, name string, i *instance) {
	for n := 1; n < len(i.terms); n++ {
		before, after := i.terms[n-1], i.terms[n]
		if p.deleted != nil && after.Time.After(p.deleted.Received) {
			return
		}
		forgotten := slices.ContainsFunc(c.Faults, func(f Fault) bool {
			return f.Kind == KindRuntimeRestart && f.on(p.node()) && f.End.After(before.Time) && f.Begin.Before(after.Time)
		})
		if !forgotten {
			c.violate("I1", fmt.Sprintf("container %s of pod %s", name, p.uid), fmt.Sprintf("one instance got TERM %d times", n+1),
				i.start.Line, before.Line, after.Line)
		}
	}
}

// startCancelled reports whether the runtime ended the instance while it was starting it: kubelet, on whose behalf it did,
// was killed at that time, and says so when it is back. The program may have come to its first line by then. What we
// have called the runtime about is not excused.
func (c *checker) startCancelled(p *pod, name string, i *instance) bool {
	if len(i.terms) > 0 || i.exit != nil {
		return false
	}
	killed := slices.ContainsFunc(c.Faults, func(f Fault) bool {
		return f.Kind == KindKubeletRestart && f.on(p.node()) && f.overlaps(i.start.Time.Add(-noticed), i.start.Time.Add(noticed))
	})
	called := func(id string) bool {
		return slices.ContainsFunc(c.Calls, func(call Call) bool { return call.changes() && call.ContainerID == bareID(id) })
	}
	cancelled := func(end *corev1.ContainerStateTerminated) bool {
		return end != nil && end.Reason == startError && i.start.Time.Sub(end.FinishedAt.Time).Abs() <= noticed &&
			killed && !called(end.ContainerID)
	}
	return slices.ContainsFunc(p.statuses, func(w Write) bool {
		return slices.ContainsFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == name && (cancelled(s.State.Terminated) || cancelled(s.LastTerminationState.Terminated))
		})
	})
}

// explain takes the stop that ended an instance out of the list. An end needs no stop when the program ended by
// itself, its start was cancelled, or the pod was deleted.
func (c *checker) explain(p *pod, name string, i *instance, left []stop) []stop {
	crashed := i.exit != nil && i.exit.Reason == exitCrash && len(i.terms) == 0
	over := i.exit != nil || i.next != nil || len(i.terms) > 0
	if crashed || !over || c.startCancelled(p, name, i) {
		return left
	}
	first := i.end(c.End)
	if len(i.terms) > 0 {
		first = i.terms[0].Time
	}
	if p.deleted != nil && !first.Before(p.deleted.Received) {
		return left
	}
	match := slices.IndexFunc(left, func(s stop) bool {
		return slices.ContainsFunc(s.calls, func(call Call) bool {
			return !call.Begin.After(first.Add(noticed)) && !call.End.Before(i.start.Time.Add(-noticed))
		})
	})
	if match < 0 {
		proof := []Line{i.start.Line}
		for _, term := range i.terms {
			proof = append(proof, term.Line)
		}
		if i.next != nil {
			proof = append(proof, i.next.Line)
		}
		c.violate("I1", fmt.Sprintf("container %s of pod %s", name, p.uid), "an instance was ended that no stop of its own explains", proof...)
		return left
	}
	c.report.Totals.Ends++
	return slices.Delete(slices.Clone(left), match, match+1)
}
