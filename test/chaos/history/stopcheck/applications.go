package stopcheck

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		if known := c.container(s.ID); known != nil {
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

// container is what is known of an ID. Kubelet never reports an instance that ends before its next report; then only the
// request for which it was stopped names it.
func (c check) container(id string) *model.Container {
	if known := c.Containers[id]; known != nil {
		return known
	}
	for _, r := range c.Requests {
		for _, spec := range r.Spec().Containers {
			if w := r.Recorded(spec.Name, id); w != nil {
				return &model.Container{PodUID: r.PodUID, Name: spec.Name, Proof: w.Line}
			}
		}
	}
	return nil
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
// have called the runtime about until then is not excused; what is left of it may be removed later.
func (c check) startCancelled(p *model.Pod, name string, i *model.Instance) bool {
	if len(i.Terms) > 0 || i.Exit != nil {
		return false
	}
	killed := slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindKubeletRestart && f.On(p.Node()) && f.Overlaps(i.Start.Time.Add(-verdict.Noticed), i.Start.Time.Add(verdict.Noticed))
	})
	called := func(end *corev1.ContainerStateTerminated) bool {
		return slices.ContainsFunc(c.Calls, func(call entry.Call) bool {
			return call.Changes() && call.ContainerID == entry.BareID(end.ContainerID) && !call.Begin.After(end.FinishedAt.Add(2*verdict.Noticed))
		})
	}
	cancelled := func(end *corev1.ContainerStateTerminated) bool {
		return end != nil && end.Reason == startError && i.Start.Time.Sub(end.FinishedAt.Time).Abs() <= verdict.Noticed &&
			killed && !called(end)
	}
	return slices.ContainsFunc(p.Statuses, func(w entry.Write) bool {
		return slices.ContainsFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == name && (cancelled(s.State.Terminated) || cancelled(s.LastTerminationState.Terminated))
		})
	})
}

// startBrokenOff reports whether the runtime was restarted while it started the instance. It ends what it has not started to the
// end, or kubelet does later, which then reports a container that ended and was never started.
func (c check) startBrokenOff(p *model.Pod, name string, i *model.Instance) bool {
	restarted := slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindRuntimeRestart && f.On(p.Node()) && f.Overlaps(i.Start.Time.Add(-verdict.Noticed), i.Start.Time.Add(verdict.Noticed))
	})
	started, neverStarted := false, false
	for _, w := range p.Statuses {
		for _, s := range w.Pod.Status.ContainerStatuses {
			if s.Name != name {
				continue
			}
			near := func(at time.Time) bool { return at.Sub(i.Start.Time).Abs() <= 2*verdict.Noticed }
			started = started || s.State.Running != nil && near(s.State.Running.StartedAt.Time)
			for _, end := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
				if end == nil {
					continue
				}
				started = started || near(end.StartedAt.Time)
				neverStarted = neverStarted || end.StartedAt.Unix() <= 0 && c.FirstStop(end.ContainerID) == nil &&
					!end.FinishedAt.Before(&metav1.Time{Time: i.Start.Time}) && !end.FinishedAt.After(i.End(c.End).Add(verdict.Noticed))
			}
		}
	}
	return restarted && (!started && (neverStarted || i.Exit == nil && len(i.Terms) == 0) || c.startFailed(p, name, i))
}

// startFailed reports whether kubelet says, during the life of the instance, that it could not start a container that nobody
// stopped. It ends a container whose start has failed, also if only the answer was lost, and starts the next one at once.
func (c check) startFailed(p *model.Pod, name string, i *model.Instance) bool {
	return slices.ContainsFunc(p.Statuses, func(w entry.Write) bool {
		return w.Received.After(i.Start.Time) && !w.Received.After(i.End(c.End).Add(verdict.Noticed)) &&
			slices.ContainsFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
				return s.Name == name && s.State.Waiting != nil && s.State.Waiting.Reason == "RunContainerError" && c.FirstStop(s.ContainerID) == nil
			})
	})
}

// startWithoutRoom reports whether the runtime ended the instance as there was no room on its disk for what it writes of a container
// that it has started. Kubelet says so, of a container that nobody stopped.
func (c check) startWithoutRoom(p *model.Pod, name string, i *model.Instance) bool {
	if len(i.Terms) > 0 || i.Exit != nil {
		return false
	}
	full := slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindNodeDiskFull && f.On(p.Node()) && f.Overlaps(i.Start.Time, i.Start.Time)
	})
	return full && c.startFailed(p, name, i)
}

// powerOff is how long it takes to end all processes of a node.
const powerOff = 10 * time.Second

// lost reports whether the instance ended with its node: it ran then, and nobody had told it to end. One that kubelet started
// when the node was back did not.
func (c check) lost(p *model.Pod, i *model.Instance) bool {
	return i.Exit == nil && len(i.Terms) == 0 && slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindNodeLost && f.On(p.Node()) && i.Start.Time.Before(f.Begin.Add(powerOff)) && i.End(c.End).After(f.Begin)
	})
}

// explain takes the stop that ended an instance out of the list. An end needs no stop when the program ended by
// itself, its start was broken off, its node was lost, or the pod was deleted.
func (c check) explain(p *model.Pod, name string, i *model.Instance, left []model.Stop) []model.Stop {
	crashed := i.Exit != nil && i.Exit.Reason == entry.ExitCrash && len(i.Terms) == 0
	over := i.Exit != nil || i.Next != nil || len(i.Terms) > 0
	if crashed || !over || c.startCancelled(p, name, i) || c.startBrokenOff(p, name, i) || c.startWithoutRoom(p, name, i) || c.lost(p, i) {
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
		what := "an instance was ended that no stop of its own explains"
		if said, line := reported(p, name, i); said != "" {
			what, proof = what+", and kubelet reports "+said, append(proof, line)
		}
		c.Violate("I1", fmt.Sprintf("container %s of pod %s", name, p.UID), what, proof...)
		return left
	}
	c.Report.Totals.Ends++
	c.warned(p, name, i, left[match])
	return slices.Delete(slices.Clone(left), match, match+1)
}

// warned checks that an application whose stop ended before its grace period was over has been told to end: nothing else can
// have ended it. One that was not yet up when the stop began may have been told before it could handle the signal, which then
// ends it.
func (c check) warned(p *model.Pod, name string, i *model.Instance, s model.Stop) {
	n := slices.IndexFunc(s.Calls, func(call entry.Call) bool {
		return call.Code == "OK" && call.Grace > 0 && call.End.Sub(call.Begin) < call.Grace-verdict.Noticed/2 && i.Start.Time.Before(call.Begin)
	})
	if n >= 0 && len(i.Terms) == 0 && i.Exit == nil {
		c.Violate("grace", fmt.Sprintf("container %s of pod %s", name, p.UID), "an instance ended without SIGTERM, before its grace period was over",
			i.Start.Line, s.Calls[n].Line)
	}
}

// reported is what kubelet says of the end of the instance: of a container that started, or could not be started, when the
// instance wrote its first line.
func reported(p *model.Pod, name string, i *model.Instance) (string, entry.Line) {
	near := func(at time.Time) bool { return at.Sub(i.Start.Time).Abs() <= 2*verdict.Noticed }
	for _, w := range p.Statuses {
		for _, status := range w.Pod.Status.ContainerStatuses {
			for _, end := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
				if status.Name == name && end != nil && (near(end.StartedAt.Time) || end.Reason == startError && near(end.FinishedAt.Time)) {
					said := fmt.Sprintf("exit code %d, %s, of %s", end.ExitCode, end.Reason, entry.Short(end.ContainerID))
					if at := w.Pod.DeletionTimestamp; at != nil {
						said += ", of a pod that is deleted until " + at.UTC().Format(time.TimeOnly)
					}
					return said, w.Line
				}
			}
		}
	}
	return "", entry.Line{}
}
