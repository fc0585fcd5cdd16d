package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// nodes checks I11: whatever the daemon's token wrote concerns the node it is bound to.
func (c *checker) nodes() {
	for _, w := range c.Writes {
		if w.User != c.options.Daemon {
			continue
		}
		if w.Code == 403 || w.Code == 422 {
			c.report.Totals.Denied++
		}
		if !w.stored() {
			continue
		}
		of := ""
		switch {
		case w.Resource == "events":
			continue
		case w.Resource == requestResource && w.Subresource == statusResource && w.Verb == "patch" && w.Request != nil:
			of = w.Request.Labels[v1beta1.LabelNodeName]
		case w.Resource == "nodepodprobes" && w.Subresource == statusResource && w.Verb == "patch":
			of = w.Name
		case w.Resource == "pods" && w.Subresource == statusResource && w.Verb == "patch" && w.Pod != nil:
			of = w.Pod.Spec.NodeName
		}
		if of == "" || of != w.Node {
			c.violate("I11", fmt.Sprintf("%s %s/%s", w.Resource, w.Namespace, w.Name),
				fmt.Sprintf("written by the daemon of node %q, but it is of node %q", w.Node, of), w.Line)
		}
	}
}

// absence checks I12 in the times with neither manager nor daemon.
func (c *checker) absence() {
	for _, fault := range c.Faults {
		if fault.Kind != KindAbsent {
			continue
		}
		within := func(l Line) bool { return !l.Time.Before(fault.Begin) && !l.Time.After(fault.End) }
		for _, w := range c.Writes {
			if within(w.Line) && (w.User == c.options.Daemon || w.User == c.options.Manager) {
				c.report.Refused = append(c.report.Refused, "I12 was not tried: "+w.String())
				break
			}
		}
		var started, restarted, deleted bool
		for _, p := range c.pods {
			begun := false
			for _, instances := range p.instances {
				begun = begun || within(instances[0].start.Line)
				restarted = restarted || slices.ContainsFunc(instances, func(i *instance) bool {
					return i.exit != nil && i.exit.Reason == exitCrash && within(i.exit.Line) && i.next != nil && within(i.next.Line)
				})
			}
			started = started || begun
			deleted = deleted || (p.deleted != nil && within(p.deleted.Line) && c.goneBy(p, fault))
		}
		for what, seen := range map[string]bool{"started": started, "restarted after a crash": restarted, "deleted": deleted} {
			if !seen {
				c.violate("I12", "pods without manager and daemon", "none was "+what, fault.line)
			}
		}
	}
}

// crashes checks that our programs ended only when they were killed or told to: whatever the runtime or the API server
// do, they go on.
func (c *checker) crashes() {
	c.crashesOf(c.options.Daemon, func(*corev1.ContainerStateTerminated) bool { return false })
	// A manager that cannot renew its lease ends itself, so that no two lead.
	c.crashesOf(c.options.Manager, func(ended *corev1.ContainerStateTerminated) bool {
		return ended.ExitCode == 1 && slices.ContainsFunc(c.Faults, func(f Fault) bool {
			return f.ofControlPlane() && f.overlaps(ended.FinishedAt.Add(-leaseTime), ended.FinishedAt.Time)
		})
	})
}

// leaseTime is for how long a manager may try to renew its lease after an outage has begun, and notice that it is over.
const leaseTime = 30 * time.Second

func (c *checker) crashesOf(user string, excused func(*corev1.ContainerStateTerminated) bool) {
	_, account, _ := strings.Cut(user, "serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	seen := map[string]bool{}
	for _, w := range c.Writes {
		if w.Pod == nil || w.Namespace != namespace || !strings.HasPrefix(w.Name, name+"-") {
			continue
		}
		for _, status := range w.Pod.Status.ContainerStatuses {
			for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
				if ended == nil || seen[ended.ContainerID] || slices.Contains(toldToEnd, ended.ExitCode) && ended.Reason != oomKilled {
					continue
				}
				if excused(ended) {
					continue
				}
				seen[ended.ContainerID] = true
				c.violate("crash", "pod "+w.Namespace+"/"+w.Name,
					fmt.Sprintf("container %s ended with exit code %d, %s", short(ended.ContainerID), ended.ExitCode, ended.Reason), w.Line)
			}
		}
	}
}

// oomKilled is kubelet's reason for a container that used more memory than its limit.
const oomKilled = "OOMKilled"

// toldToEnd are the exit codes after SIGTERM and SIGKILL.
var toldToEnd = []int32{0, 128 + 9, 128 + 15}

// goneBy reports whether kubelet removed the pod in that time: its own deletion follows the user's.
func (c *checker) goneBy(p *pod, fault Fault) bool {
	return slices.ContainsFunc(c.Writes, func(w Write) bool {
		return w.Verb == "delete" && w.Resource == "pods" && w.Namespace == p.namespace && w.Name == p.name && w.stored() &&
			w.Received.After(p.deleted.Received) && w.Received.Before(fault.End)
	})
}
