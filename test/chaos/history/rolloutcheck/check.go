// Package rolloutcheck checks restarts of workloads (I13): no more pods at a time than the rollout allows, each pod once,
// and an end that is true; and what the manager creates rollouts for (I16).
package rolloutcheck

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// settled is how long a pod must have been unavailable for the manager to know of it, and available for it to be sure.
const settled = 5 * time.Second

// Check adds what it finds to the judgement.
func Check(j *verdict.Judgement) {
	c := check{Judgement: j}
	c.collect()
	for _, r := range c.rollouts {
		c.Report.Totals.Rollouts++
		c.once(r)
		c.budget(r)
		c.end(r)
	}
	c.triggers()
}

type check struct {
	*verdict.Judgement
	rollouts []*rollout
}

// rollout is the life of one RestartRollout.
type rollout struct {
	uid, name string // the name with the namespace
	namespace string
	created   entry.Write
	last      entry.Write
	deleted   *entry.Write
	requests  []*model.Request
}

func (c *check) collect() {
	byUID := map[string]*rollout{}
	for i := range c.Writes {
		w := &c.Writes[i]
		if w.Resource != entry.RolloutResource {
			continue
		}
		if w.Verb == "delete" && (w.Stored() || w.Unsure()) {
			for _, r := range byUID {
				if r.namespace == w.Namespace && r.created.Rollout.Name == w.Name && r.deleted == nil {
					r.deleted = w
				}
			}
		}
		if w.Rollout == nil {
			continue
		}
		uid := string(w.Rollout.UID)
		r := byUID[uid]
		if r == nil {
			r = &rollout{uid: uid, namespace: w.Namespace, name: w.Namespace + "/" + w.Rollout.Name, created: *w, last: *w}
			byUID[uid] = r
			c.rollouts = append(c.rollouts, r)
		}
		if revision(*w) < revision(r.created) {
			r.created = *w
		}
		if revision(*w) > revision(r.last) {
			r.last = *w
		}
	}
	for _, request := range c.Requests {
		if r := byUID[request.Created.Request.Labels[refitv1alpha1.LabelRestartRollout]]; r != nil {
			r.requests = append(r.requests, request)
		}
	}
}

func revision(w entry.Write) int64 { return entry.Revision(w.Rollout.ResourceVersion) }

// once checks that a rollout makes one request for a pod at most.
func (c *check) once(r *rollout) {
	byPod := map[string][]*model.Request{}
	for _, request := range r.requests {
		byPod[request.PodUID] = append(byPod[request.PodUID], request)
	}
	for pod, all := range byPod {
		if len(all) > 1 {
			c.Violate("I13", "rollout "+r.name, fmt.Sprintf("restarted pod %s %d times", pod, len(all)), all[0].Created.Line, all[1].Created.Line)
		}
	}
}

// budget checks each restart of a pod that was available: with it, no more are unavailable than may be.
func (c *check) budget(r *rollout) {
	for _, request := range r.requests {
		at := request.Created.Received
		own := c.Pods[request.PodUID]
		if own == nil || unready(own, at.Add(-settled), at) {
			continue // a pod that is unavailable anyway costs nothing
		}
		var proof []entry.Line
		for uid, p := range c.Pods {
			if p == own || p.Namespace != r.namespace || p.Deleted != nil && p.Deleted.Received.Before(at) {
				continue
			}
			if line, unavailable := c.unavailable(r, p, uid, at); unavailable {
				proof = append(proof, line)
			}
		}
		if most := r.most(len(r.requests)); len(proof)+1 > most {
			c.Violate("I13", "rollout "+r.name, fmt.Sprintf("pod %s is the %dth that is unavailable at a time, want %d at most", own.Name, len(proof)+1, most),
				append(proof, request.Created.Line)...)
		}
	}
}

// most is how many of the pods may be unavailable.
func (r *rollout) most(pods int) int {
	limit := cmp.Or(r.created.Rollout.Spec.MaxUnavailable, &intstr.IntOrString{IntVal: 1})
	n, err := intstr.GetScaledValueFromIntOrPercent(limit, max(pods, int(r.last.Rollout.Status.MatchedPods)), false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// unavailable reports whether the pod was under restart by the rollout, or had not been ready for long, with the proof.
func (c *check) unavailable(r *rollout, p *model.Pod, uid string, at time.Time) (entry.Line, bool) {
	for _, request := range r.requests {
		if request.PodUID != uid || !request.Created.Received.Before(at) || request.UnsureSince(at) {
			continue
		}
		if end, ended := request.EndedAt(); !ended || end.After(at) {
			return request.Created.Line, true
		}
	}
	var since *entry.Write
	for i := range p.Statuses {
		w := &p.Statuses[i]
		switch {
		case !w.Received.Before(at):
		case ready(w.Pod):
			since = nil
		case since == nil:
			since = w
		}
	}
	unsure := slices.ContainsFunc(p.Unsure, func(w entry.Write) bool {
		return since != nil && !w.Done.Before(since.Received) && w.Received.Before(at)
	})
	outages := slices.DeleteFunc(slices.Clone(c.Faults), func(f entry.Fault) bool { return !f.OfControlPlane() })
	if since == nil || unsure || entry.Unimpeded(outages, "", since.Received, at) < settled {
		return entry.Line{}, false
	}
	return since.Line, true
}

// unready reports whether the pod was not ready at any moment of that time.
func unready(p *model.Pod, begin, end time.Time) bool {
	before := true
	for _, w := range p.Statuses {
		switch is := ready(w.Pod); {
		case w.Received.Before(begin):
			before = is
		case w.Received.Before(end) && !is:
			return true
		}
	}
	return !before
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// unsure reports whether the rollout may have been written after the last version that is known.
func (c *check) unsure(r *rollout) bool {
	return slices.ContainsFunc(c.Unsure(entry.RolloutResource, r.namespace, r.created.Rollout.Name), func(w entry.Write) bool {
		return !w.Done.Before(r.last.Received)
	})
}

// endsCalm is how long a rollout of the run may take once nothing is broken any more: less than the run waits for it.
const endsCalm = 3 * time.Minute

// calmSince is when the last fault was over, or begin if that is later.
func (c *check) calmSince(begin time.Time) time.Time {
	for _, f := range c.Faults {
		if f.Kind != entry.KindAbsent && f.End.After(begin) {
			begin = f.End
		}
	}
	return begin
}

// partition returns a partition in pods. The load writes numbers.
func partition(of *intstr.IntOrString) int {
	if of == nil {
		return 0
	}
	return of.IntValue()
}

// end checks that a rollout ends, and that one that has succeeded has restarted its pods.
func (c *check) end(r *rollout) {
	status := r.last.Rollout.Status
	if !meta.IsStatusConditionTrue(status.Conditions, refitv1alpha1.ConditionFinished) {
		if r.deleted != nil || c.unsure(r) {
			return
		}
		patience := c.Options.Patience * time.Duration(1+max(len(r.requests), int(status.MatchedPods)))
		if took := entry.Unimpeded(c.Faults, "", r.created.Received, c.End); took > patience {
			c.Violate("I13", "rollout "+r.name, fmt.Sprintf("not ended after %s, not counting faults", took.Round(time.Millisecond)), r.created.Line, r.last.Line)
		} else if took := entry.Unimpeded(c.Faults, "", c.calmSince(r.created.Received), c.End); took > endsCalm {
			c.Violate("I13", "rollout "+r.name, fmt.Sprintf("not ended %s after the last fault", took.Round(time.Millisecond)), r.created.Line, r.last.Line)
		}
		return
	}
	c.Report.Totals.RolledOut++
	succeeded := 0
	for _, request := range r.requests {
		terminal := request.Terminal()
		if terminal != nil && terminal.Request.Status.Message == "" || terminal == nil && request.UnsureSince(c.End) {
			succeeded++
		}
	}
	want := int(status.MatchedPods) - partition(r.last.Rollout.Spec.Partition)
	if !meta.IsStatusConditionTrue(status.Conditions, refitv1alpha1.ConditionSucceeded) {
		if want > 0 && succeeded >= want && succeeded == len(r.requests) && r.last.Rollout.Spec.ActiveDeadlineSeconds == nil {
			c.Violate("I13", "rollout "+r.name, fmt.Sprintf("is called failed, and all of its %d pods were restarted", want), r.created.Line, r.last.Line)
		}
		return
	}
	if succeeded < want {
		c.Violate("I13", "rollout "+r.name, fmt.Sprintf("succeeded, but %d of %d pods were restarted", succeeded, want), r.created.Line, r.last.Line)
	}
}
