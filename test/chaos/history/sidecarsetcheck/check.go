package sidecarsetcheck

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// Check adds what it finds to the judgement: every SidecarSet is followed through the audit log.
func Check(j *verdict.Judgement) {
	var names []string
	for i := range j.Writes {
		if set := j.Writes[i].SidecarSet; set != nil && !slices.Contains(names, set.Name) {
			names = append(names, set.Name)
		}
	}
	for _, name := range names {
		c := check{Judgement: j, name: name, seen: map[types.UID]int64{}}
		c.follow()
	}
}

// check is of one SidecarSet.
type check struct {
	*verdict.Judgement
	name     string
	follower *Follower
	// selector is of pods, namespaces of their namespaces by name: the run asks for no other label of them.
	selector, namespaces labels.Selector
	seen                 map[types.UID]int64 // the revision of the version of a pod that was seen last
}

func (c *check) follow() {
	writes := c.stored()
	for _, w := range writes {
		if set := w.SidecarSet; set != nil {
			c.followSet(w)
			continue
		}
		in := labels.Set{corev1.LabelMetadataName: w.Pod.Namespace}
		if c.follower == nil || !c.selector.Matches(labels.Set(w.Pod.Labels)) || !c.namespaces.Matches(in) {
			continue
		}
		c.followPod(w)
	}
	if c.follower == nil {
		return
	}
	c.Report.Totals.SidecarUpdates += c.follower.Updates()
	for _, f := range c.follower.Findings() {
		c.Violate("I15", "SidecarSet "+c.name, f.String(), f.Proof...)
	}
	c.end()
}

// stored are the versions of the SidecarSet and of all pods, in the order in which they were stored.
func (c *check) stored() []entry.Write {
	var writes []entry.Write
	for _, w := range c.Writes {
		if w.Pod != nil || w.SidecarSet != nil && w.SidecarSet.Name == c.name {
			writes = append(writes, w)
		}
	}
	slices.SortStableFunc(writes, func(a, b entry.Write) int {
		return cmp.Or(cmp.Compare(revision(a), revision(b)), a.Received.Compare(b.Received))
	})
	return writes
}

func revision(w entry.Write) int64 {
	if w.Pod != nil {
		return entry.Revision(w.Pod.ResourceVersion)
	}
	return entry.Revision(w.SidecarSet.ResourceVersion)
}

func (c *check) followSet(w entry.Write) {
	set := w.SidecarSet
	if len(set.Spec.Containers) != 1 {
		return
	}
	container := &set.Spec.Containers[0]
	if c.follower == nil {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if err != nil {
			return // admission refuses it
		}
		c.selector, c.namespaces = selector, labels.Everything()
		if set.Spec.NamespaceSelector != nil {
			if c.namespaces, err = metav1.LabelSelectorAsSelector(set.Spec.NamespaceSelector); err != nil {
				return
			}
		}
		c.follower = &Follower{SidecarSet: set.Name, Container: container.Name, Records: c.Model}
		// The write of an image may be missing.
		for i := range c.Writes {
			if other := c.Writes[i].SidecarSet; other != nil && other.Name == c.name && len(other.Spec.Containers) == 1 {
				c.follower.Allow(other.Spec.Containers[0].Image)
			}
		}
	}
	c.follower.MaxUnavailable = most(set)
	c.follower.Target(container.Image, w.Received, w.Line)
}

// most is the absolute number of pods that may be in an update: the run asks for no percentage.
func most(set *v1beta1.SidecarSet) int {
	limit := cmp.Or(set.Spec.UpdateStrategy.MaxUnavailable, &intstr.IntOrString{IntVal: 1})
	return max(limit.IntValue(), 1)
}

func (c *check) followPod(w entry.Write) {
	gone := w.Verb == "delete" && (w.Pod.DeletionGracePeriodSeconds == nil || *w.Pod.DeletionGracePeriodSeconds == 0)
	at := revision(w)
	if before := c.seen[w.Pod.UID]; at < before || at == before && !gone {
		return // a write that changes nothing repeats the version
	}
	c.seen[w.Pod.UID] = at
	c.follower.See(Version{Pod: w.Pod, Gone: gone, At: w.Received, Line: w.Line})
}

// ended is how long a rollout may take once nothing is broken any more.
const ended = 2 * time.Minute

// end checks that the newest image has reached every pod.
func (c *check) end() {
	f := c.follower
	took := entry.Unimpeded(c.Faults, "", f.changed, c.End)
	removed := slices.ContainsFunc(c.Writes, func(w entry.Write) bool {
		return w.Resource == entry.SetResource && w.Name == c.name && w.Verb == "delete" && (w.Stored() || w.Unsure())
	})
	if removed || took < ended {
		return
	}
	for _, p := range f.pods {
		if p.Gone || p.Pod.DeletionTimestamp != nil || !f.injected(p.Pod) || f.doubtAt(p, p.At, c.End) {
			continue
		}
		if is := image(p.Pod, f.Container); is != f.target || p.inFlight {
			c.Violate("I15", "SidecarSet "+c.name, fmt.Sprintf("pod %s has the image %s, not ready: %t; want %s since %s, not counting faults",
				p.Pod.Name, is, p.inFlight, f.target, took.Round(time.Second)), f.proof, p.Line)
		}
	}
}
