// Package clustercheck checks what is not about one request: probed conditions (I8), what the daemon's token may write
// (I11), life without Refit (I12), pulls that nobody wants any more (I9), crashes, webhooks that others do not
// depend on, and the load on the API server and the runtime.
package clustercheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// nodes checks I11: whatever the daemon's token wrote concerns the node it is bound to.
func (c check) nodes() {
	for _, w := range c.Writes {
		if w.User != c.Options.Daemon {
			continue
		}
		if w.Code == 403 || w.Code == 422 {
			c.Report.Totals.Denied++
		}
		if !w.Stored() {
			continue
		}
		of := ""
		switch {
		case w.Resource == "events":
			continue
		// Under the CRD of OpenKruise the record of what is stopped is an annotation, which is not of the status.
		case w.Resource == entry.RequestResource && (w.Subresource == entry.StatusResource || w.Subresource == "") && w.Verb == "patch" && w.Request != nil:
			of = w.Request.Labels[v1beta1.LabelNodeName]
		case w.Resource == "nodeimages" && w.Subresource == entry.StatusResource && w.Verb == "patch":
			of = w.Name
		case w.Resource == "nodepodprobes" && w.Subresource == entry.StatusResource && w.Verb == "patch":
			of = w.Name
		case w.Resource == "pods" && w.Subresource == entry.StatusResource && w.Verb == "patch" && w.Pod != nil:
			of = w.Pod.Spec.NodeName
		}
		if len(w.Labels) > 0 {
			c.Violate("I11", fmt.Sprintf("%s %s/%s", w.Resource, w.Namespace, w.Name), fmt.Sprintf("the daemon has changed its labels %q", w.Labels), w.Line)
		}
		if of == "" || of != w.Node {
			c.Violate("I11", fmt.Sprintf("%s %s/%s", w.Resource, w.Namespace, w.Name),
				fmt.Sprintf("written by the daemon of node %q, but it is of node %q", w.Node, of), w.Line)
		}
	}
}

// absence checks I12 in the times with neither manager nor daemon.
func (c check) absence() {
	for _, fault := range c.Faults {
		if fault.Kind != entry.KindAbsent {
			continue
		}
		within := func(l entry.Line) bool { return !l.Time.Before(fault.Begin) && !l.Time.After(fault.End) }
		for _, w := range c.Writes {
			if within(w.Line) && (w.User == c.Options.Daemon || w.User == c.Options.Manager) {
				c.Report.Refused = append(c.Report.Refused, "I12 was not tried: "+w.String())
				break
			}
		}
		var started, restarted, deleted bool
		for _, p := range c.Pods {
			begun := false
			for _, instances := range p.Instances {
				begun = begun || within(instances[0].Start.Line)
				restarted = restarted || slices.ContainsFunc(instances, func(i *model.Instance) bool {
					return i.Exit != nil && i.Exit.Reason == entry.ExitCrash && within(i.Exit.Line) && i.Next != nil && within(i.Next.Line)
				})
			}
			started = started || begun
			deleted = deleted || (p.Deleted != nil && within(p.Deleted.Line) && c.goneBy(p, fault))
		}
		for what, seen := range map[string]bool{"started": started, "restarted after a crash": restarted, "deleted": deleted} {
			if !seen {
				c.Violate("I12", "pods without manager and daemon", "none was "+what, fault.Line)
			}
		}
	}
}

// crashes checks that our programs ended only when they were killed or told to: whatever the runtime or the API server
// do, they go on.
func (c check) crashes() {
	c.crashesOf(c.ofProgram(c.Options.Daemon), func(entry.Write, *corev1.ContainerStateTerminated) bool { return false })
	// A manager that cannot renew its lease ends itself, so that no two lead.
	c.crashesOf(c.ofProgram(c.Options.Manager), func(_ entry.Write, ended *corev1.ContainerStateTerminated) bool {
		return ended.ExitCode == 1 && slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
			return (f.OfControlPlane() || f.Kind == entry.KindManagerAway || f.Kind == entry.KindManagerPause) && f.Overlaps(ended.FinishedAt.Add(-leaseTime), ended.FinishedAt.Time)
		})
	})
	// A start that was broken off is no end of the program.
	sidecar := func(_ entry.Write, status corev1.ContainerStatus) bool { return status.Name == sidecarName }
	c.crashesOf(sidecar, func(w entry.Write, ended *corev1.ContainerStateTerminated) bool {
		return ended.Reason == startError && slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
			return (f.Kind == entry.KindRuntimeRestart || f.Kind == entry.KindKubeletRestart) && f.On(w.Pod.Spec.NodeName) && f.Overlaps(ended.FinishedAt.Add(-leaseTime), ended.FinishedAt.Time)
		})
	})
}

const (
	sidecarName = "refit-sidecar"
	// startError is containerd's reason for a container that it could not start.
	startError = "StartError"
)

// ofProgram reports whether a status is of a container of one of our programs, by its account.
func (c check) ofProgram(user string) func(entry.Write, corev1.ContainerStatus) bool {
	return func(w entry.Write, _ corev1.ContainerStatus) bool { return c.of(user, w) }
}

// leaseTime is for how long a manager may try to renew its lease after an outage has begun, and notice that it is over.
const leaseTime = 30 * time.Second

// of reports whether the write is of the status of a pod of one of our programs.
func (c check) of(user string, w entry.Write) bool {
	_, account, _ := strings.Cut(user, "serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	return w.Pod != nil && w.Namespace == namespace && strings.HasPrefix(w.Name, name+"-")
}

func (c check) crashesOf(of func(entry.Write, corev1.ContainerStatus) bool, excused func(entry.Write, *corev1.ContainerStateTerminated) bool) {
	seen, begin := map[string]bool{}, c.begin()
	earlier := func(ended *corev1.ContainerStateTerminated) bool { // of an earlier run on the same cluster
		return !ended.FinishedAt.IsZero() && ended.FinishedAt.Time.Before(begin.Truncate(time.Second))
	}
	for _, w := range c.Writes {
		if w.Pod == nil {
			continue
		}
		for _, status := range w.Pod.Status.ContainerStatuses {
			if !of(w, status) {
				continue
			}
			for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
				if ended == nil || seen[ended.ContainerID] || slices.Contains(toldToEnd, ended.ExitCode) && ended.Reason != oomKilled {
					continue
				}
				if earlier(ended) || excused(w, ended) || c.lost(w, ended) {
					continue
				}
				seen[ended.ContainerID] = true
				c.Violate("crash", "pod "+w.Namespace+"/"+w.Name,
					fmt.Sprintf("container %s ended with exit code %d, %s", entry.Short(ended.ContainerID), ended.ExitCode, ended.Reason), w.Line)
			}
		}
	}
}

// begin of the records.
func (c check) begin() time.Time {
	var begin time.Time
	for _, w := range c.Writes {
		if begin.IsZero() || w.Received.Before(begin) {
			begin = w.Received
		}
	}
	return begin
}

// lost reports whether the container ended with its node, of which the runtime knows nothing.
func (c check) lost(w entry.Write, ended *corev1.ContainerStateTerminated) bool {
	const unknown = "Unknown" // containerd's reason
	return ended.Reason == unknown && slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindNodeLost && f.On(w.Pod.Spec.NodeName) && !w.Received.Before(f.Begin)
	})
}

// oomKilled is kubelet's reason for a container that used more memory than its limit.
const oomKilled = "OOMKilled"

// toldToEnd are the exit codes after SIGTERM and SIGKILL.
var toldToEnd = []int32{0, 128 + 9, 128 + 15}

// goneBy reports whether kubelet removed the pod in that time: its own deletion follows the user's.
func (c check) goneBy(p *model.Pod, fault entry.Fault) bool {
	return slices.ContainsFunc(c.Writes, func(w entry.Write) bool {
		return w.Verb == "delete" && w.Resource == "pods" && w.Namespace == p.Namespace && w.Name == p.Name && w.Stored() &&
			w.Received.After(p.Deleted.Received) && w.Received.Before(fault.End)
	})
}
