package rolloutcheck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// everyMinute is the cron expression whose times are checked.
const everyMinute = "* * * * *"

// triggers checks I16.
func (c *check) triggers() {
	for config, since := range c.watched() {
		created := c.createdFor(config.namespace, kindConfigMap+"/"+config.name)
		c.Report.Totals.Triggered += len(created)
		c.changed(config, since, created)
	}
	for _, s := range c.schedules() {
		created := c.createdFor(s.namespace, refitv1alpha1.KindRestartSchedule+"/"+s.name)
		c.Report.Totals.Scheduled += len(created)
		c.scheduled(s, created)
	}
}

const kindConfigMap = "ConfigMap"

// configMap is one that a workload uses.
type configMap struct{ namespace, name string }

// watched are the ConfigMaps that a RestartTrigger names, and since when it does. In a run one workload uses each.
func (c *check) watched() map[configMap]time.Time {
	since := map[configMap]time.Time{}
	for _, w := range c.Writes {
		if w.Trigger == nil {
			continue
		}
		for _, object := range w.Trigger.Status.Objects {
			config := configMap{w.Namespace, object.Name}
			if first, known := since[config]; object.Kind == kindConfigMap && object.Digest != "" && (!known || w.Received.Before(first)) {
				since[config] = w.Received
			}
		}
	}
	return since
}

// createdFor are the rollouts with that trigger, in the order of their creation.
func (c *check) createdFor(namespace, trigger string) []*rollout {
	var found []*rollout
	for _, r := range c.rollouts {
		if r.namespace == namespace && r.created.Rollout.Annotations[refitv1alpha1.AnnotationTrigger] == trigger {
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b *rollout) int { return a.created.Received.Compare(b.created.Received) })
	return found
}

// changed checks that a ConfigMap never has had fewer changes than rollouts, and that each change was followed by one. In a
// run no content is written twice.
func (c *check) changed(config configMap, since time.Time, created []*rollout) {
	var changes []entry.Write // in the order of the audit log
	for _, w := range c.Writes {
		if w.Resource == entry.ConfigResource && w.Namespace == config.namespace && w.Name == config.name && slices.Contains([]string{"update", "patch"}, w.Verb) &&
			w.Stored() && w.Done.After(since.Add(-settled)) {
			changes = append(changes, w)
		}
	}
	possible := slices.Concat(changes, c.Unsure(entry.ConfigResource, config.namespace, config.name))
	for n, r := range created {
		before := 0
		for _, w := range possible {
			if w.Received.Before(r.created.Received) {
				before++
			}
		}
		if n+1 > before {
			c.Violate("I16", "rollout "+r.name, fmt.Sprintf("is rollout %d for %d changes of ConfigMap %s", n+1, before, config.name), r.created.Line)
		}
	}
	for _, w := range changes {
		if w.Received.Before(since) {
			continue
		}
		until, line := c.End, w.Line
		if n := slices.IndexFunc(created, func(r *rollout) bool { return !r.created.Received.Before(w.Received) }); n >= 0 {
			until, line = created[n].created.Received, created[n].created.Line
		}
		c.late("ConfigMap "+config.namespace+"/"+config.name, "a change was followed by no rollout", w.Done, until, created, w.Line, line)
	}
}

// late reports what has taken longer than the rollout before it and its own may, not counting faults.
func (c *check) late(subject, what string, begin, until time.Time, created []*rollout, proof ...entry.Line) {
	pods := 1
	for _, r := range created {
		pods = max(pods, int(r.last.Rollout.Status.MatchedPods))
	}
	patience := c.Options.Patience * time.Duration(2+pods)
	if took := entry.Unimpeded(c.Faults, "", begin, until); took > patience {
		c.Violate("I16", subject, fmt.Sprintf("%s for %s, not counting faults", what, took.Round(time.Millisecond)), proof...)
	}
}

// schedule is the life of a RestartSchedule.
type schedule struct {
	namespace, name string
	first           entry.Write
	suspended       time.Time // or deleted; zero if it never was
}

func (c *check) schedules() []*schedule {
	var all []*schedule
	for _, w := range c.Writes {
		if w.Resource != entry.ScheduleResource {
			continue
		}
		n := slices.IndexFunc(all, func(s *schedule) bool { return s.namespace == w.Namespace && s.name == w.Name })
		switch {
		case w.Schedule == nil && (w.Verb != "delete" || n < 0):
		case n < 0:
			all = append(all, &schedule{namespace: w.Namespace, name: w.Schedule.Name, first: w})
		case (w.Schedule == nil || w.Schedule.Spec.Suspend) && all[n].suspended.IsZero():
			all[n].suspended = w.Received
		}
	}
	return all
}

// scheduled checks that each time has one rollout at most, not before it, and that a time leads to one, or to one for a
// later time.
func (c *check) scheduled(s *schedule, created []*rollout) {
	of := map[time.Time]*rollout{}
	for _, r := range created {
		minutes, err := strconv.ParseInt(strings.TrimPrefix(r.created.Rollout.Name, s.name+"-"), 10, 64)
		at := time.Unix(minutes*60, 0)
		other := of[at]
		switch {
		case err != nil:
			c.Violate("I16", "rollout "+r.name, "names no time of schedule "+s.name, r.created.Line)
			continue
		case other != nil:
			c.Violate("I16", "rollout "+r.name, "is the second for the time "+at.UTC().Format(time.TimeOnly), other.created.Line, r.created.Line)
		case r.created.Received.Before(at.Add(-time.Second)):
			c.Violate("I16", "rollout "+r.name, "was created before its time "+at.UTC().Format(time.TimeOnly), r.created.Line)
		}
		of[at] = r
	}
	if s.first.Schedule.Spec.Schedule != everyMinute {
		return
	}
	end := c.End
	if !s.suspended.IsZero() {
		end = s.suspended
	}
	for at := s.first.Received.Truncate(time.Minute).Add(time.Minute); at.Before(end); at = at.Add(time.Minute) {
		until, line := end, s.first.Line
		for due, r := range of {
			if !due.Before(at) && r.created.Received.Before(until) {
				until, line = r.created.Received, r.created.Line
			}
		}
		c.late("RestartSchedule "+s.namespace+"/"+s.name, "the time "+at.UTC().Format(time.TimeOnly)+" had no rollout", at, until, created, s.first.Line, line)
	}
}
