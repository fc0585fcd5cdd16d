// Package clustercheck checks what is not about one request: probed conditions (I8), what the daemon's token may write
// (I11), life without Refit (I12), pulls that nobody wants any more (I9), crashes, webhooks that others do not
// depend on, and the load on the API server and the runtime.
package clustercheck

import (
	"fmt"
	"slices"

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
		case w.Resource == entry.NodeImageResource && w.Subresource == entry.StatusResource && w.Verb == "patch":
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

// goneBy reports whether kubelet removed the pod in that time: its own deletion follows the user's.
func (c check) goneBy(p *model.Pod, fault entry.Fault) bool {
	return slices.ContainsFunc(c.Writes, func(w entry.Write) bool {
		return w.Verb == "delete" && w.Resource == "pods" && w.Namespace == p.Namespace && w.Name == p.Name && w.Stored() &&
			w.Received.After(p.Deleted.Received) && w.Received.Before(fault.End)
	})
}
