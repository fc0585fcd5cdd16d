// Package model sorts the entries of a run's records by what they are about: requests, pods, instances of containers,
// and stops. It judges nothing.
package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// Records are all that is known of a run.
type Records struct {
	Writes  []entry.Write
	Calls   []entry.Call
	Signals []entry.Signal
	Faults  []entry.Fault
	Turns   []entry.Turn
	// Updates are what the containers of pods whose sidecar updates files have written down.
	Updates []entry.Signal
	// Watched is what a client has seen of EndpointSlices, PodDisruptionBudgets and workloads.
	Watched []entry.Watched
	// Samples of what our programs used.
	Samples []entry.Sample
	// Broken lines of the audit log: at most one for each time the API server was killed.
	Broken int
	// End of the run, when everything had time to settle.
	End time.Time
}

// Model is the records sorted by what they are about.
type Model struct {
	Records
	Requests   []*Request
	Pods       map[string]*Pod       // by UID
	Containers map[string]*Container // by bare ID
}

// New sorts records.
func New(records Records) *Model {
	m := &Model{Records: records, Pods: map[string]*Pod{}, Containers: map[string]*Container{}}
	m.addRequests()
	m.addPods()
	m.addDeletions()
	m.addInstances()
	return m
}

func (m *Model) addRequests() {
	byUID := map[string]*Request{}
	for _, w := range m.Writes {
		if w.Resource != entry.RequestResource || w.Request == nil {
			continue
		}
		r := byUID[string(w.Request.UID)]
		if r == nil {
			r = &Request{
				UID: string(w.Request.UID), Namespace: w.Request.Namespace, Name: w.Request.Name,
				PodUID: w.Request.Labels[v1beta1.LabelPodUID], Created: w,
			}
			byUID[r.UID] = r
			m.Requests = append(m.Requests, r)
		}
		// A write that changes nothing repeats the version, and so does an answer that was logged late.
		if !slices.ContainsFunc(r.Versions, func(v entry.Write) bool { return v.Request.ResourceVersion == w.Request.ResourceVersion }) {
			r.Versions = append(r.Versions, w)
		}
	}
	for _, r := range m.Requests {
		slices.SortStableFunc(r.Versions, func(a, b entry.Write) int {
			return cmp.Compare(entry.Revision(a.Request.ResourceVersion), entry.Revision(b.Request.ResourceVersion))
		})
		r.Created = r.Versions[0]
		r.Unsure = m.Unsure(entry.RequestResource, r.Namespace, r.Name)
	}
	slices.SortFunc(m.Requests, func(a, b *Request) int {
		return cmp.Compare(entry.Revision(a.Created.Request.ResourceVersion), entry.Revision(b.Created.Request.ResourceVersion))
	})
}

const (
	// lineLate is how long after a write was stored, and others could know of it, its audit line is written: at a load of 55 on
	// two cores within 0.5 s.
	lineLate = 5 * time.Second
	// goesOn is for how long an API server that is told to end still serves writes.
	goesOn = 15 * time.Second
)

// Unsure are the writes to an object that nobody knows the outcome of, and those whose audit line may have died with
// the API server.
func (m *Model) Unsure(resource, namespace, name string) []entry.Write {
	var writes []entry.Write
	for _, w := range m.Writes {
		if w.Resource == resource && w.Namespace == namespace && w.Name == name && w.Unsure() {
			writes = append(writes, w)
		}
	}
	for _, fault := range m.Faults {
		if fault.LosesLines() {
			done := fault.Begin
			if fault.Kind == entry.KindAPIServerStop { // it goes on for a while when it is told to end
				done = done.Add(goesOn)
			}
			writes = append(writes, entry.Write{Line: fault.Line, Received: fault.Begin.Add(-lineLate), Done: done})
		}
	}
	return writes
}
