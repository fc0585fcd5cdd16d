package policycheck

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// images are the images of the containers of a pod, or of a template, by their names.
func images(spec *corev1.PodSpec) map[string]string {
	all := map[string]string{}
	for i := range spec.Containers {
		all[spec.Containers[i].Name] = spec.Containers[i].Image
	}
	return all
}

// template is what the pods of a workload are to have from a moment on.
type template struct {
	images     map[string]string
	since      time.Time
	generation int64 // the first and
	until      int64 // the last one of the workload with this template
	line       entry.Line
}

// templates returns the templates that the workload has had, one after the other.
func (p *policy) templates() (all []template) {
	for _, w := range p.workload {
		is := images(&w.Workload.Spec.Template.Spec)
		if n := len(all); n > 0 && maps.Equal(all[n-1].images, is) {
			all[n-1].until = max(all[n-1].until, w.Workload.Generation)
			continue
		}
		if len(is) == 0 {
			continue
		}
		all = append(all, template{images: is, since: w.At, generation: w.Workload.Generation, until: w.Workload.Generation, line: w.Line})
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
		c.Violate("I22", p.String(), fmt.Sprintf("the update to %v is not complete after %s, not counting faults", t.images, took.Round(time.Second)), t.line, p.versions[len(p.versions)-1].Line)
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
		is := images(&newest.Pod.Spec)
		for name, image := range t.images {
			if is[name] != image {
				c.Violate("I22", p.String(), fmt.Sprintf("the update is called complete, and pod %s has the image %s in container %s, want %s", newest.Pod.Name, is[name], name, image),
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

// once checks that a container gets no more images than its template has had.
func (c *check) once(p *policy, pod *pod) {
	templates := p.templates()
	if len(templates) == 0 {
		return
	}
	for name := range templates[0].images {
		var writes []entry.Write
		for i := 1; i < len(pod.versions); i++ {
			was, is := images(&pod.versions[i-1].Pod.Spec)[name], images(&pod.versions[i].Pod.Spec)[name]
			if was != is && pod.versions[i].User == c.Options.Manager {
				writes = append(writes, pod.versions[i])
			}
		}
		c.Report.Totals.Followers += len(writes)
		if c.blind(p, pod) {
			continue
		}
		changes := 0
		for n := 1; n < len(templates); n++ {
			if templates[n].images[name] != templates[n-1].images[name] && templates[n].since.After(pod.versions[0].Received.Add(-noticed)) {
				changes++
			}
		}
		if created := images(&pod.versions[0].Pod.Spec)[name]; created != p.imageAt(pod.versions[0].Received, name) {
			changes++ // it was created with the former template
		}
		if len(writes) > changes {
			var proof []entry.Line
			for _, w := range writes {
				proof = append(proof, w.Line)
			}
			c.Violate("I22", p.String(), fmt.Sprintf("container %s of pod %s got another image %d times; its template changed %d times", name, pod.last().Pod.Name, len(writes), changes), proof...)
		}
		c.restarts(p, pod, name, len(writes))
	}
}

// blind reports whether a change of the template may have been missed while the pod was there.
func (c *check) blind(p *policy, pod *pod) bool {
	return slices.ContainsFunc(c.Watched, func(w entry.Watched) bool {
		return w.Event == entry.WatchLost && w.Kind == p.versions[0].Policy.Spec.TargetRef.Kind &&
			w.At.After(pod.versions[0].Received) && !w.At.After(pod.last().Received)
	})
}

// imageAt is the image of a container in the template of that time.
func (p *policy) imageAt(at time.Time, container string) string {
	image := ""
	for _, t := range p.templates() {
		if image == "" || !t.since.After(at) {
			image = t.images[container]
		}
	}
	return image
}

// restarts checks that a container was restarted no more often than its image has changed.
func (c *check) restarts(p *policy, pod *pod, name string, writes int) {
	last := pod.last()
	first := pod.versions[0].Received
	for _, s := range last.Pod.Status.ContainerStatuses {
		if s.Name != name || int(s.RestartCount) <= writes || c.doubtful(pod, first, last.Received) || c.ordered(pod, name) {
			continue
		}
		if !slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
			return restarting(f) && f.On(last.Pod.Spec.NodeName) && f.Overlaps(first, last.Received)
		}) {
			c.Violate("I22", p.String(), fmt.Sprintf("container %s of pod %s was restarted %d times; it got another image %d times", name, last.Pod.Name, s.RestartCount, writes), last.Line)
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

// others checks that containers that are not in the template, or do not change in it, keep their image.
func (c *check) others(p *policy, pod *pod) {
	allowed := map[string][]string{}
	for _, t := range p.templates() {
		for name, image := range t.images {
			allowed[name] = append(allowed[name], image)
		}
	}
	for i := 1; i < len(pod.versions); i++ {
		w := pod.versions[i]
		if w.User != c.Options.Manager {
			continue
		}
		was := images(&pod.versions[i-1].Pod.Spec)
		for name, image := range images(&w.Pod.Spec) {
			if was[name] != image && !slices.Contains(allowed[name], image) {
				c.Violate("I22", p.String(), fmt.Sprintf("container %s of pod %s got the image %s, which its template has never had", name, w.Pod.Name, image), w.Line)
			}
		}
	}
}
