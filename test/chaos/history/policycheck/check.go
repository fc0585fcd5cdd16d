// Package policycheck checks that the pods of workloads follow their templates in place (I22). It judges the InPlaceUpdatePolicies of the
// audit log, with the workloads that a client of the run has watched and the versions of their pods. How many pods are unavailable at a
// time is judged by package availabilitycheck.
package policycheck

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// Check adds what it finds to the judgement.
func Check(j *verdict.Judgement) {
	c := check{Judgement: j}
	for _, p := range c.policies() {
		c.replaced(p)
		c.ends(p)
		for _, pod := range p.pods {
			c.once(p, pod)
			c.others(p, pod)
		}
	}
}

type check struct {
	*verdict.Judgement
}

// policy is an InPlaceUpdatePolicy with all of its versions, its workload and the pods of that, each in the order in which they were stored.
type policy struct {
	namespace, name string
	versions        []entry.Write
	workload        []entry.Watched
	pods            []*pod
	deleted         time.Time // when its deletion was asked for; zero if it was not
}

func (p *policy) String() string { return "InPlaceUpdatePolicy " + p.namespace + "/" + p.name }

// pod is one with all of its versions, including the writes by which it was deleted.
type pod struct {
	uid      string
	versions []entry.Write
}

func (p *pod) last() entry.Write { return p.versions[len(p.versions)-1] }

// policies returns the InPlaceUpdatePolicies of the run whose workloads were watched.
func (c *check) policies() []*policy {
	byName := map[[2]string]*policy{}
	var all []*policy
	for _, w := range c.Writes {
		if w.Resource != entry.PolicyResource {
			continue
		}
		key := [2]string{w.Namespace, w.Name}
		p := byName[key]
		switch {
		case p == nil && w.Policy != nil:
			p = &policy{namespace: w.Namespace, name: w.Policy.Name}
			byName[[2]string{w.Namespace, w.Policy.Name}] = p
			all = append(all, p)
		case p == nil:
			continue
		}
		if w.Verb == "delete" && (w.Stored() || w.Unsure()) && (p.deleted.IsZero() || w.Received.Before(p.deleted)) {
			p.deleted = w.Received
		}
		if w.Policy != nil {
			p.versions = append(p.versions, w)
		}
	}
	for _, p := range all {
		slices.SortStableFunc(p.versions, func(a, b entry.Write) int {
			return cmp.Compare(entry.Revision(a.Policy.ResourceVersion), entry.Revision(b.Policy.ResourceVersion))
		})
		p.workload = c.workloadOf(p)
		p.pods = c.podsOf(p)
	}
	return slices.DeleteFunc(all, func(p *policy) bool { return len(p.workload) == 0 })
}

// workloadOf are the versions of the workload of a policy, as far as they were watched.
func (c *check) workloadOf(p *policy) (versions []entry.Watched) {
	target := p.versions[0].Policy.Spec.TargetRef
	for _, w := range c.Watched {
		if w.Workload != nil && w.Workload.Namespace == p.namespace && w.Workload.Name == target.Name && w.Kind == target.Kind {
			versions = append(versions, w)
		}
	}
	return versions
}

// podsOf are the pods of the workload: those that its selector matches.
func (c *check) podsOf(p *policy) (all []*pod) {
	if len(p.workload) == 0 {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(p.workload[0].Workload.Spec.Selector)
	if err != nil {
		return nil // the API server refuses it
	}
	byUID := map[string]*pod{}
	for _, w := range c.Writes {
		if w.Pod == nil || w.Pod.Namespace != p.namespace || !selector.Matches(labels.Set(w.Pod.Labels)) {
			continue
		}
		uid := string(w.Pod.UID)
		if byUID[uid] == nil {
			byUID[uid] = &pod{uid: uid}
			all = append(all, byUID[uid])
		}
		byUID[uid].versions = append(byUID[uid].versions, w)
	}
	for _, p := range all {
		slices.SortStableFunc(p.versions, func(a, b entry.Write) int {
			return cmp.Compare(entry.Revision(a.Pod.ResourceVersion), entry.Revision(b.Pod.ResourceVersion))
		})
	}
	return all
}

// removedAt is when the workload was deleted; the end of the run if it was not.
func (c *check) removedAt(p *policy) time.Time {
	for _, w := range p.workload {
		if w.Event == entry.WatchDeleted || w.Workload.DeletionTimestamp != nil {
			return w.At
		}
	}
	return c.End
}

// controllers are those that create and delete the pods of workloads.
var controllers = []string{
	"system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccount:kube-system:statefulset-controller",
	"system:serviceaccount:kube-system:daemon-set-controller",
}

// replaced checks that with InPlaceOnly no controller deletes a pod that had not ended.
func (c *check) replaced(p *policy) {
	if p.versions[0].Policy.Spec.PodUpdatePolicy != refitv1alpha1.PodUpdateInPlaceOnly {
		return
	}
	for _, pod := range p.pods {
		for _, w := range pod.versions {
			ended := w.Pod.Status.Phase == corev1.PodFailed || w.Pod.Status.Phase == corev1.PodSucceeded
			if w.Verb == "delete" && w.Stored() && slices.Contains(controllers, w.User) && !ended && w.Received.Before(c.removedAt(p)) && !p.removed(w.Received) {
				c.Violate("I22", p.String(), fmt.Sprintf("pod %s was deleted by %s, with podUpdatePolicy InPlaceOnly", w.Pod.Name, w.User), w.Line)
				break
			}
		}
	}
}

// noticed is how late a client that watches may get to know of a deletion.
const noticed = 5 * time.Second

// removed reports whether the deletion of the policy had been asked for: the run deletes it with its workload.
func (p *policy) removed(at time.Time) bool {
	return !p.deleted.IsZero() && at.After(p.deleted.Add(-noticed))
}

// ready is the generation of the template that a version calls complete; 0 if it calls none so.
func ready(w entry.Write) int64 {
	if meta.IsStatusConditionTrue(w.Policy.Status.Conditions, refitv1alpha1.ConditionReady) {
		return w.Policy.Status.ObservedTargetGeneration
	}
	return 0
}
