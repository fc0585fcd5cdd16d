package policycheck

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// template is what the pods of a workload are to have from a moment on.
type template struct {
	fields     map[field]string
	since      time.Time
	generation int64 // the first and
	until      int64 // the last one of the workload with this template
	line       entry.Line
}

// templates returns the templates that the workload has had, one after the other.
func (p *policy) templates() (all []template) {
	for _, w := range p.workload {
		is := fields(&w.Workload.Spec.Template.ObjectMeta, &w.Workload.Spec.Template.Spec)
		if n := len(all); n > 0 && maps.Equal(all[n-1].fields, is) {
			all[n-1].until = max(all[n-1].until, w.Workload.Generation)
			continue
		}
		if len(is) == 0 {
			continue
		}
		all = append(all, template{fields: is, since: w.At, generation: w.Workload.Generation, until: w.Workload.Generation, line: w.Line})
	}
	return all
}

// ended is how long an update of a workload may take once nothing is broken any more.
const ended = 2 * time.Minute

// ends checks that each template is called complete, and only when all pods have it.
func (c *check) ends(p *policy) {
	all := p.templates()
	for n, t := range all {
		until := c.removedAt(p)
		if n+1 < len(all) {
			until = all[n+1].since
		}
		if !p.deleted.IsZero() && p.deleted.Before(until) {
			until = p.deleted
		}
		complete := p.complete(t)
		if complete == nil {
			c.late(p, t, until)
			continue
		}
		if n > 0 {
			c.Report.Totals.Templates++
		}
		c.all(p, t, *complete)
	}
}

// complete is the first version of the policy that calls the template complete; nil if there is none.
func (p *policy) complete(t template) *entry.Write {
	for i := range p.versions {
		if g := ready(p.versions[i]); g >= t.generation && g <= t.until {
			return &p.versions[i]
		}
	}
	return nil
}

// late checks that a template that is not called complete has not had the time for it.
func (c *check) late(p *policy, t template, until time.Time) {
	since := t.since
	if begun := p.versions[0].Received; begun.After(since) {
		since = begun
	}
	unsure := slices.ContainsFunc(c.Unsure(entry.PolicyResource, p.namespace, p.name), func(w entry.Write) bool { return !w.Done.Before(since) })
	if took := entry.Unimpeded(c.Faults, "", since, until); took > ended && !unsure {
		c.Violate("I22", p.String(), fmt.Sprintf("the update to %s is not complete after %s, not counting faults", list(t.fields), took.Round(time.Second)), t.line, p.versions[len(p.versions)-1].Line)
	}
}

// all checks that all pods had the template when it was called complete.
func (c *check) all(p *policy, t template, complete entry.Write) {
	at := entry.Revision(complete.Policy.ResourceVersion)
	for _, pod := range p.pods {
		var newest *entry.Write
		for i := range pod.versions {
			if entry.Revision(pod.versions[i].Pod.ResourceVersion) < at {
				newest = &pod.versions[i]
			}
		}
		if newest == nil || newest.Pod.DeletionTimestamp != nil || newest.Verb == "delete" || c.doubtful(pod, newest.Received, complete.Received) ||
			!pod.versions[0].Received.Before(complete.Received.Add(-noticed)) {
			continue
		}
		is := fieldsOf(newest.Pod)
		for f, value := range t.fields {
			if is[f] != value {
				c.Violate("I22", p.String(), fmt.Sprintf("the update is called complete, and pod %s has the %s %s, want %s", newest.Pod.Name, f, is[f], value),
					t.line, newest.Line, complete.Line)
			}
		}
	}
}

// doubtful reports whether versions of the pod in that time may be missing.
func (c *check) doubtful(p *pod, since, until time.Time) bool {
	first := p.versions[0].Pod
	return slices.ContainsFunc(c.Unsure("pods", first.Namespace, first.Name), func(w entry.Write) bool {
		return !w.Done.Before(since) && w.Received.Before(until)
	})
}

// once checks that a field of a pod is set no more often than it has changed in the template, and what restarts a container with it.
func (c *check) once(p *policy, pod *pod) {
	templates := p.templates()
	if len(templates) == 0 {
		return
	}
	begun := map[string]int{} // restarts of each container, at most
	for f := range templates[0].fields {
		writes := c.writes(pod, f)
		c.Report.Totals.Followers += len(writes)
		if f.restarts() {
			begun[f.container] += len(writes)
		}
		changes := p.changes(pod, func(a, b map[field]string) bool { return a[f] != b[f] })
		if len(writes) > changes && !c.blind(p, pod) {
			c.Violate("I22", p.String(), fmt.Sprintf("pod %s got another %s %d times; its template changed it %d times", pod.last().Pod.Name, f, len(writes), changes), writes...)
		}
	}
	if c.blind(p, pod) {
		return
	}
	for name, most := range begun {
		c.restarts(p, pod, name, min(most, p.changes(pod, func(a, b map[field]string) bool { return restarted(name, a, b) })))
	}
}

// writes are the lines of the manager's writes that changed a field of the pod.
func (c *check) writes(pod *pod, f field) (all []entry.Line) {
	for i := 1; i < len(pod.versions); i++ {
		was, is := fieldsOf(pod.versions[i-1].Pod)[f], fieldsOf(pod.versions[i].Pod)[f]
		if was != is && pod.versions[i].User == c.Options.Manager {
			all = append(all, pod.versions[i].Line)
		}
	}
	return all
}

// changes is how often the template has changed while the pod was there. A pod that was created with the former template has one more.
func (p *policy) changes(pod *pod, differ func(a, b map[field]string) bool) (n int) {
	created := pod.versions[0]
	templates := p.templates()
	then := templates[0]
	for i := 1; i < len(templates); i++ {
		if !templates[i].since.After(created.Received) {
			then = templates[i]
		}
		if templates[i].since.After(created.Received.Add(-noticed)) && differ(templates[i-1].fields, templates[i].fields) {
			n++
		}
	}
	if differ(fieldsOf(created.Pod), then.fields) {
		n++
	}
	return n
}

// blind reports whether a change of the template may have been missed while the pod was there.
func (c *check) blind(p *policy, pod *pod) bool {
	return slices.ContainsFunc(c.Watched, func(w entry.Watched) bool {
		return w.Event == entry.WatchLost && w.Kind == p.versions[0].Policy.Spec.TargetRef.Kind &&
			w.At.After(pod.versions[0].Received) && !w.At.After(pod.last().Received)
	})
}

// restarts checks that a container was restarted no more often than its image or its environment has changed.
func (c *check) restarts(p *policy, pod *pod, name string, most int) {
	last := pod.last()
	first := pod.versions[0].Received
	for _, s := range last.Pod.Status.ContainerStatuses {
		if s.Name != name || int(s.RestartCount) <= most || c.doubtful(pod, first, last.Received) || c.ordered(pod, name) {
			continue
		}
		if !slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
			return restarting(f) && f.On(last.Pod.Spec.NodeName) && f.Overlaps(first, last.Received)
		}) {
			c.Violate("I22", p.String(), fmt.Sprintf("container %s of pod %s was restarted %d times; its template asked for %d restarts", name, last.Pod.Name, s.RestartCount, most), last.Line)
		}
	}
}

// restarting are the faults after which kubelet may start a container once more: its node, runtime or kubelet ended, or had no room.
func restarting(f entry.Fault) bool {
	return slices.Contains([]string{entry.KindNodeLost, entry.KindRuntimeRestart, entry.KindKubeletRestart, entry.KindNodeDiskFull}, f.Kind)
}

// ordered reports whether a request restarts the container.
func (c *check) ordered(pod *pod, name string) bool {
	for _, r := range c.Requests {
		for _, spec := range r.Spec().Containers {
			if r.PodUID == pod.uid && spec.Name == name {
				return true
			}
		}
	}
	return false
}

// others checks that the pod gets no value that its template has never had, and that containers that are not in the template do not change.
func (c *check) others(p *policy, pod *pod) {
	allowed := map[field][]string{}
	for _, t := range p.templates() {
		for f, value := range t.fields {
			allowed[f] = append(allowed[f], value)
		}
	}
	for i := 1; i < len(pod.versions); i++ {
		w := pod.versions[i]
		if w.User != c.Options.Manager {
			continue
		}
		was := fieldsOf(pod.versions[i-1].Pod)
		for f, value := range fieldsOf(w.Pod) {
			if was[f] != value && !slices.Contains(allowed[f], value) {
				c.Violate("I22", p.String(), fmt.Sprintf("pod %s got the %s %s, which its template has never had", w.Pod.Name, f, value), w.Line)
			}
		}
	}
}
