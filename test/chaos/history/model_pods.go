package history

import (
	"cmp"
	"slices"
)

func (m *model) addPods() {
	for _, w := range m.Writes {
		if w.Pod == nil {
			continue
		}
		p := m.pods[string(w.Pod.UID)]
		if p == nil {
			p = &pod{uid: string(w.Pod.UID), namespace: w.Pod.Namespace, name: w.Pod.Name, instances: map[string][]*instance{}}
			m.pods[p.uid] = p
		}
		p.statuses = append(p.statuses, w)
		for _, status := range w.Pod.Status.ContainerStatuses {
			ids := []string{status.ContainerID}
			if ended := status.LastTerminationState.Terminated; ended != nil {
				ids = append(ids, ended.ContainerID)
			}
			for _, id := range ids {
				m.identify(id, container{podUID: p.uid, name: status.Name, proof: w.Line})
			}
		}
	}
	for _, p := range m.pods {
		p.unsure = m.unsure("pods", p.namespace, p.name)
		slices.SortStableFunc(p.statuses, func(a, b Write) int {
			return cmp.Compare(revision(a.Pod.ResourceVersion), revision(b.Pod.ResourceVersion))
		})
	}
	// Admission took these from a status that may have been written before the records begin.
	for _, r := range m.requests {
		for _, c := range r.spec().Containers {
			if c.StatusContext != nil {
				m.identify(c.StatusContext.ContainerID, container{podUID: r.podUID, name: c.Name, proof: r.created.Line})
			}
		}
	}
}

// identify keeps the first word on an ID: kubelet's before admission's.
func (m *model) identify(id string, c container) {
	id = bareID(id)
	if id != "" && m.containers[id] == nil {
		m.containers[id] = &c
	}
}

func (m *model) addDeletions() {
	for i := range m.Writes {
		w := &m.Writes[i]
		if (w.Verb != "delete" && w.Verb != "deletecollection") || (!w.stored() && !w.unsure()) {
			continue
		}
		matches := func(namespace, name string) bool {
			return w.Namespace == namespace && (w.Verb == "deletecollection" || w.Name == name)
		}
		switch w.Resource {
		case requestResource:
			for _, r := range m.requests {
				if r.deleted == nil && matches(r.namespace, r.name) && r.created.Received.Before(w.Done) {
					r.deleted = w
				}
			}
		case "pods":
			for _, p := range m.pods {
				if w.Subresource == "" && p.deleted == nil && matches(p.namespace, p.name) && p.statuses[0].Received.Before(w.Done) {
					p.deleted = w
				}
			}
		}
	}
}

func (m *model) addInstances() {
	signals := slices.Clone(m.Signals)
	slices.SortStableFunc(signals, func(a, b Signal) int { return a.Time.Compare(b.Time) })
	for _, s := range signals {
		p := m.pods[s.PodUID]
		if p == nil {
			p = &pod{uid: s.PodUID, instances: map[string][]*instance{}}
			m.pods[s.PodUID] = p
		}
		list := p.instances[s.Container]
		if s.Event == eventStart {
			if len(list) > 0 {
				list[len(list)-1].next = &s
			}
			p.instances[s.Container] = append(list, &instance{start: s})
			continue
		}
		if len(list) == 0 {
			continue
		}
		current := list[len(list)-1]
		switch {
		case s.Event == eventSignal && s.Signal == "SIGTERM":
			current.terms = append(current.terms, s)
		case s.Event == eventExit:
			current.exit = &s
		}
	}
}
