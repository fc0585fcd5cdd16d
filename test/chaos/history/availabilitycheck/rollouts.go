package availabilitycheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// rollout is a RestartRollout with all of its versions.
type rollout struct {
	created  entry.Write
	versions []entry.Write // in the order in which they were stored
	deleted  bool
}

// at is the rollout as it was at that moment.
func (r *rollout) at(m moment) *refitv1alpha1.RestartRollout {
	newest := r.created.Rollout
	for _, w := range r.versions {
		if (moment{entry.Revision(w.Rollout.ResourceVersion), w.Received}).before(m) {
			newest = w.Rollout
		}
	}
	return newest
}

func (r *rollout) last() entry.Write { return r.versions[len(r.versions)-1] }

func (r *rollout) String() string {
	return fmt.Sprintf("rollout %s/%s", r.created.Namespace, r.created.Rollout.Name)
}

func (c *check) collectRollouts() {
	c.rollouts = map[string]*rollout{}
	for _, w := range c.Writes {
		if w.Rollout == nil {
			continue
		}
		uid := string(w.Rollout.UID)
		if c.rollouts[uid] == nil {
			c.rollouts[uid] = &rollout{}
		}
		c.rollouts[uid].versions = append(c.rollouts[uid].versions, w)
	}
	for _, r := range c.rollouts {
		slices.SortStableFunc(r.versions, func(a, b entry.Write) int {
			return cmp.Compare(entry.Revision(a.Rollout.ResourceVersion), entry.Revision(b.Rollout.ResourceVersion))
		})
		r.created = r.versions[0]
		r.deleted = slices.ContainsFunc(c.Writes, func(w entry.Write) bool {
			return w.Resource == entry.RolloutResource && w.Verb == "delete" && w.Namespace == r.created.Namespace &&
				w.Name == r.created.Rollout.Name && !w.Received.Before(r.created.Received) && (w.Stored() || w.Unsure())
		}) || r.last().Rollout.DeletionTimestamp != nil
	}
}

// ended is the version in which the rollout is called complete, or nil.
func (r *rollout) ended() *entry.Write {
	for i := range r.versions {
		if meta.IsStatusConditionTrue(r.versions[i].Rollout.Status.Conditions, refitv1alpha1.ConditionFinished) {
			return &r.versions[i]
		}
	}
	return nil
}

// told is how long after the end of the last restart of a rollout its status may not show it.
const told = 30 * time.Second

// statuses checks I21: what the statuses of rollouts say at their end.
func (c *check) statuses() {
	for _, uid := range slices.Sorted(maps.Keys(c.rollouts)) {
		r := c.rollouts[uid]
		ended := r.ended()
		unsure := slices.ContainsFunc(c.Unsure(entry.RolloutResource, r.created.Namespace, r.created.Rollout.Name), func(w entry.Write) bool {
			return !w.Done.Before(r.last().Received)
		})
		if ended == nil || unsure {
			continue
		}
		var takes []*take
		for _, w := range c.all {
			for _, t := range w.takes {
				if t.rollout == uid {
					takes = append(takes, t)
				}
			}
		}
		c.endedEarly(r, *ended, takes)
		c.counts(r, *ended, takes)
	}
}

// endedEarly: a rollout is complete when nothing that it has begun is under way, unless its deadline has ended it or its workload is gone.
func (c *check) endedEarly(r *rollout, ended entry.Write, takes []*take) {
	failed := meta.FindStatusCondition(ended.Rollout.Status.Conditions, refitv1alpha1.ConditionFailed)
	if failed != nil && slices.Contains([]string{refitv1alpha1.ReasonDeadlineExceeded, refitv1alpha1.ReasonTargetNotFound}, failed.Reason) {
		return
	}
	at := moment{entry.Revision(ended.Rollout.ResourceVersion), ended.Received}
	for _, t := range takes {
		if t.underWay(at) && t.pod.present(at) && !t.unsure(at) {
			c.Violate("I21", r.String(), "is called complete while a container of pod "+t.pod.Name+" is being stopped", t.line, ended.Line)
		}
	}
}

// counts: the pods that were restarted are counted, and none is called restarting when nothing is under way.
func (c *check) counts(r *rollout, ended entry.Write, takes []*take) {
	last := r.last()
	restarted, newest := 0, ended.Received
	var proof []entry.Line
	for _, t := range takes {
		over := t.over
		if over == (moment{}) {
			over = moment{at: c.End}
		}
		if t.unsure(over) {
			return
		}
		if t.over == (moment{}) {
			newest = c.End
			continue
		}
		if t.over.at.After(newest) {
			newest = t.over.at
		}
		if t.changed != (moment{}) && t.changed.at.Before(ended.Received.Add(-settled)) && t.pod.present(moment{at: ended.Received}) {
			restarted++
			proof = append(proof, t.line)
		}
	}
	status := last.Rollout.Status
	if status.RestartingPods > 0 && !r.deleted && entry.Unimpeded(c.Faults, "", newest, c.End) > told {
		c.Violate("I21", r.String(), fmt.Sprintf("calls %d pods restarting, and nothing is under way since %s", status.RestartingPods, newest.UTC().Format(time.TimeOnly)),
			ended.Line, last.Line)
	}
	if int(status.RestartedPods) < restarted {
		c.Violate("I21", r.String(), fmt.Sprintf("calls %d pods restarted, and %d were", status.RestartedPods, restarted), append(proof, last.Line)...)
	}
}
