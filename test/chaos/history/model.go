package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
)

// Records are all that is known of a run.
type Records struct {
	Writes  []Write
	Calls   []Call
	Signals []Signal
	Faults  []Fault
	Turns   []Turn
	// Broken lines of the audit log: at most one for each time the API server was killed.
	Broken int
	// End of the run, when everything had time to settle.
	End time.Time
}

// model is the records sorted by what they are about.
type model struct {
	Records
	requests   []*request
	pods       map[string]*pod       // by UID
	containers map[string]*container // by bare ID
}

// request is the life of one ContainerRecreateRequest.
type request struct {
	uid, namespace, name, podUID string
	created                      Write
	versions                     []Write // with an object, in the order of their revisions
	deleted                      *Write  // the first deletion asked for
	unsure                       []Write // writes nobody knows the outcome of
}

func (r *request) String() string { return r.namespace + "/" + r.name }

// node is the one whose daemon carries the request out.
func (r *request) node() string { return r.created.Request.Labels[v1beta1.LabelNodeName] }

func (r *request) spec() v1beta1.ContainerRecreateRequestSpec { return r.created.Request.Spec }

// terminal is the first version that has ended.
func (r *request) terminal() *Write {
	for i := range r.versions {
		if ended(r.versions[i].Request.Status) {
			return &r.versions[i]
		}
	}
	return nil
}

// endedAt is when the request had ended or was deleted, and whether it was.
func (r *request) endedAt() (time.Time, bool) {
	var at time.Time
	if terminal := r.terminal(); terminal != nil {
		at = terminal.Received
	}
	if r.deleted != nil && (at.IsZero() || r.deleted.Received.Before(at)) {
		at = r.deleted.Received
	}
	return at, !at.IsZero()
}

func ended(status v1beta1.ContainerRecreateRequestStatus) bool {
	return status.Phase == v1beta1.ContainerRecreateRequestCompleted || status.CompletionTime != nil
}

// unsureSince reports whether the request may have been written between the last version we know of that is older
// than that time, and that time.
func (r *request) unsureSince(at time.Time) bool {
	last := r.created.Received
	for _, v := range r.versions {
		if v.Received.Before(at) {
			last = v.Received
		}
	}
	return slices.ContainsFunc(r.unsure, func(w Write) bool { return !w.Done.Before(last) && w.Received.Before(at) })
}

// recorded is the first version that names the instance as the one this request stops.
func (r *request) recorded(container, id string) *Write {
	for i := range r.versions {
		for _, state := range r.versions[i].Request.Status.ContainerRecreateStates {
			if state.Name == container && bareID(state.ContainerID) == id {
				return &r.versions[i]
			}
		}
	}
	return nil
}

// pod is one pod of the run, as kubelet reported it.
type pod struct {
	uid, namespace, name string
	statuses             []Write // in the order of their revisions
	unsure               []Write
	deleted              *Write
	instances            map[string][]*instance // by container, in the order of their starts
}

// instance is one run of a container, as the application saw it.
type instance struct {
	start Signal
	terms []Signal
	exit  *Signal
	next  *Signal // the start of the next one
}

// end is the last moment at which the instance may have run.
func (i *instance) end(end time.Time) time.Time {
	switch {
	case i.exit != nil:
		return i.exit.Time
	case i.next != nil:
		return i.next.Time
	default:
		return end
	}
}

// node of the pod; empty if kubelet has said nothing of it.
func (p *pod) node() string {
	if len(p.statuses) == 0 {
		return ""
	}
	return p.statuses[0].Pod.Spec.NodeName
}

// container is what is known of a container ID.
type container struct {
	podUID, name string
	proof        Line
}

func newModel(records Records) *model {
	m := &model{Records: records, pods: map[string]*pod{}, containers: map[string]*container{}}
	m.addRequests()
	m.addPods()
	m.addDeletions()
	m.addInstances()
	return m
}

func (m *model) addRequests() {
	byUID := map[string]*request{}
	for _, w := range m.Writes {
		if w.Resource != requestResource || w.Request == nil {
			continue
		}
		r := byUID[string(w.Request.UID)]
		if r == nil {
			r = &request{
				uid: string(w.Request.UID), namespace: w.Request.Namespace, name: w.Request.Name,
				podUID: w.Request.Labels[v1beta1.LabelPodUID], created: w,
			}
			byUID[r.uid] = r
			m.requests = append(m.requests, r)
		}
		// A write that changes nothing repeats the version, and so does an answer that was logged late.
		if !slices.ContainsFunc(r.versions, func(v Write) bool { return v.Request.ResourceVersion == w.Request.ResourceVersion }) {
			r.versions = append(r.versions, w)
		}
	}
	for _, r := range m.requests {
		slices.SortStableFunc(r.versions, func(a, b Write) int {
			return cmp.Compare(revision(a.Request.ResourceVersion), revision(b.Request.ResourceVersion))
		})
		r.created = r.versions[0]
		r.unsure = m.unsure(requestResource, r.namespace, r.name)
	}
	slices.SortFunc(m.requests, func(a, b *request) int {
		return cmp.Compare(revision(a.created.Request.ResourceVersion), revision(b.created.Request.ResourceVersion))
	})
}

// underWay is how long a write may have been under way when the API server was killed.
const underWay = 15 * time.Second

// unsure are the writes to an object that nobody knows the outcome of, and those whose audit line may have died with
// the API server.
func (m *model) unsure(resource, namespace, name string) []Write {
	var writes []Write
	for _, w := range m.Writes {
		if w.Resource == resource && w.Namespace == namespace && w.Name == name && w.unsure() {
			writes = append(writes, w)
		}
	}
	for _, fault := range m.Faults {
		if fault.Kind == KindAPIServerKill {
			writes = append(writes, Write{Line: fault.line, Received: fault.Begin.Add(-underWay), Done: fault.Begin})
		}
	}
	return writes
}
