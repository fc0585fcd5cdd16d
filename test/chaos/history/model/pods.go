package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// Pod is one pod of the run.
type Pod struct {
	UID, Namespace, Name string
	First                entry.Write   // the first write that shows it
	Statuses             []entry.Write // by kubelet, in the order of their revisions; none if the pod was deleted before
	Unsure               []entry.Write
	Deleted              *entry.Write           // the first deletion or eviction asked for
	Instances            map[string][]*Instance // by container, in the order of their starts
}

// Instance is one run of a container, as the application saw it.
type Instance struct {
	Start entry.Signal
	Terms []entry.Signal
	Exit  *entry.Signal
	Next  *entry.Signal // the start of the next one
}

// End is the last moment at which the instance may have run.
func (i *Instance) End(end time.Time) time.Time {
	switch {
	case i.Exit != nil:
		return i.Exit.Time
	case i.Next != nil:
		return i.Next.Time
	default:
		return end
	}
}

// Node of the pod; empty if kubelet has said nothing of it.
func (p *Pod) Node() string {
	if len(p.Statuses) == 0 {
		return ""
	}
	return p.Statuses[0].Pod.Spec.NodeName
}

// Container is what is known of a container ID.
type Container struct {
	PodUID, Name string
	Proof        entry.Line
}

// Replaced reports whether the status is of another container than old, running and ready.
func Replaced(status corev1.ContainerStatus, old string) bool {
	return status.Ready && status.State.Running != nil && entry.BareID(status.ContainerID) != entry.BareID(old)
}

func (m *Model) addPods() {
	for _, w := range m.Writes {
		if w.Pod == nil {
			continue
		}
		p := m.Pods[string(w.Pod.UID)]
		if p == nil {
			p = &Pod{UID: string(w.Pod.UID), Namespace: w.Pod.Namespace, Name: w.Pod.Name, First: w, Instances: map[string][]*Instance{}}
			m.Pods[p.UID] = p
		}
		if w.Subresource != entry.StatusResource {
			continue
		}
		p.Statuses = append(p.Statuses, w)
		for _, status := range w.Pod.Status.ContainerStatuses {
			ids := []string{status.ContainerID}
			if ended := status.LastTerminationState.Terminated; ended != nil {
				ids = append(ids, ended.ContainerID)
			}
			for _, id := range ids {
				m.identify(id, Container{PodUID: p.UID, Name: status.Name, Proof: w.Line})
			}
		}
	}
	for _, p := range m.Pods {
		p.Unsure = m.Unsure("pods", p.Namespace, p.Name)
		slices.SortStableFunc(p.Statuses, func(a, b entry.Write) int {
			return cmp.Compare(entry.Revision(a.Pod.ResourceVersion), entry.Revision(b.Pod.ResourceVersion))
		})
	}
	// Admission took these from a status that may have been written before the records begin.
	for _, r := range m.Requests {
		for _, c := range r.Spec().Containers {
			if c.StatusContext != nil {
				m.identify(c.StatusContext.ContainerID, Container{PodUID: r.PodUID, Name: c.Name, Proof: r.Created.Line})
			}
		}
	}
}

// identify keeps the first word on an ID: kubelet's before admission's.
func (m *Model) identify(id string, c Container) {
	id = entry.BareID(id)
	if id != "" && m.Containers[id] == nil {
		m.Containers[id] = &c
	}
}

func (m *Model) addDeletions() {
	for i := range m.Writes {
		w := &m.Writes[i]
		evicts := w.Verb == "create" && w.Subresource == "eviction"
		if (w.Verb != "delete" && w.Verb != "deletecollection" && !evicts) || (!w.Stored() && !w.Unsure()) {
			continue
		}
		matches := func(namespace, name string) bool {
			return w.Namespace == namespace && (w.Verb == "deletecollection" || w.Name == name)
		}
		switch w.Resource {
		case entry.RequestResource:
			for _, r := range m.Requests {
				if r.Deleted == nil && matches(r.Namespace, r.Name) && r.Created.Received.Before(w.Done) {
					r.Deleted = w
				}
			}
		case "pods":
			for _, p := range m.Pods {
				if (w.Subresource == "" || evicts) && p.Deleted == nil && matches(p.Namespace, p.Name) && p.First.Received.Before(w.Done) {
					p.Deleted = w
				}
			}
		}
	}
	for _, p := range m.Pods {
		if w := p.unloggedDeletion(); w != nil && (p.Deleted == nil || w.Received.Before(p.Deleted.Received)) {
			p.Deleted = w
		}
	}
}

// unloggedDeletion is a deletion that the pod's metadata shows, at a time whose audit lines may be missing. The line is the line of
// the status with this metadata.
func (p *Pod) unloggedDeletion() *entry.Write {
	for _, w := range p.Statuses {
		if w.Pod.DeletionTimestamp == nil || w.Pod.DeletionGracePeriodSeconds == nil {
			continue
		}
		// metav1.Time has no fractions of a second: it was asked for within the second that begins then.
		asked := w.Pod.DeletionTimestamp.Add(-time.Duration(*w.Pod.DeletionGracePeriodSeconds) * time.Second)
		if slices.ContainsFunc(p.Unsure, func(u entry.Write) bool { return !asked.Add(time.Second).Before(u.Received) && !asked.After(u.Done) }) {
			return &entry.Write{Line: w.Line, Verb: "delete", Resource: "pods", Namespace: p.Namespace, Name: p.Name, Received: asked, Done: w.Received}
		}
	}
	return nil
}

func (m *Model) addInstances() {
	signals := slices.Clone(m.Signals)
	slices.SortStableFunc(signals, func(a, b entry.Signal) int { return a.Time.Compare(b.Time) })
	for _, s := range signals {
		p := m.Pods[s.PodUID]
		if p == nil {
			p = &Pod{UID: s.PodUID, Instances: map[string][]*Instance{}}
			m.Pods[s.PodUID] = p
		}
		list := p.Instances[s.Container]
		if s.Event == entry.EventStart {
			if len(list) > 0 {
				list[len(list)-1].Next = &s
			}
			p.Instances[s.Container] = append(list, &Instance{Start: s})
			continue
		}
		if len(list) == 0 {
			continue
		}
		current := list[len(list)-1]
		switch {
		case s.Event == entry.EventSignal && s.Signal == "SIGTERM":
			current.Terms = append(current.Terms, s)
		case s.Event == entry.EventExit:
			current.Exit = &s
		}
	}
}

// Labels are the labels of the pod that the environment of a container refers to. When one of them changes the container is restarted.
func Labels(c *corev1.Container) (all []string) {
	for _, env := range c.Env {
		if env.ValueFrom == nil || env.ValueFrom.FieldRef == nil {
			continue
		}
		if label, ok := strings.CutPrefix(env.ValueFrom.FieldRef.FieldPath, "metadata.labels['"); ok {
			all = append(all, strings.TrimSuffix(label, "']"))
		}
	}
	return all
}
