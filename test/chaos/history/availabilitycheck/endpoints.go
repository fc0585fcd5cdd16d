package availabilitycheck

import (
	"fmt"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// endpoints checks I17: what a client has seen of the Services of the workload. What counts as taken out by Refit is a pod that was a
// ready endpoint after something was begun on it, and is none before it serves again. What else is not ready is not Refit's doing.
func (c *check) endpoints(w *workload) {
	v := view{slices: map[string][]string{}, served: map[*take]bool{}, down: map[*pod]time.Time{}}
	before := false
	for _, event := range c.Watched {
		if event.Kind != entry.KindEndpointSlice {
			continue
		}
		if event.Event == entry.WatchLost {
			v.slices = map[string][]string{}
			continue
		}
		if event.Slice.Namespace != w.namespace || !w.serving(event.Slice) {
			continue
		}
		v.see(w, event)
		out, allowed := v.out(w, event.At)
		if over := len(out) > allowed; over != before {
			before = over
			if over {
				c.Violate("I17", "workload "+w.String(), fmt.Sprintf("%d pods that served are out of %s by Refit; at most %d may be",
					len(out), event.Slice.Labels[discoveryv1.LabelServiceName], allowed), append(lines(out), event.Line)...)
			}
		}
	}
}

// serving reports whether the slice has pods of the workload.
func (w *workload) serving(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
		return e.TargetRef != nil && slices.ContainsFunc(w.pods, func(p *pod) bool { return p.UID == string(e.TargetRef.UID) })
	})
}

// view is what a client knows.
type view struct {
	slices map[string][]string // UIDs of ready endpoints, by slice
	served map[*take]bool      // the pod was a ready endpoint after this was begun
	down   map[*pod]time.Time  // since when it has not been a ready endpoint
}

func (v *view) see(w *workload, event entry.Watched) {
	v.note(w, event.At) // what was begun since the last event
	v.slices[event.Slice.Name] = entry.ReadyPods(event.Slice)
	if event.Event == entry.WatchDeleted {
		delete(v.slices, event.Slice.Name)
	}
	v.note(w, event.At)
	for _, p := range w.pods {
		if v.ready(p) {
			delete(v.down, p)
		} else if v.down[p].IsZero() {
			v.down[p] = event.At
		}
	}
}

// deleted reports whether the pod served until somebody deleted it, for example with its Deployment. Evictions are Refit's doing.
func (v *view) deleted(p *pod) bool {
	d := p.Deleted
	return d != nil && d.Stored() && d.Subresource != "eviction" && !v.down[p].Before(d.Received)
}

func (v *view) note(w *workload, at time.Time) {
	for _, t := range w.takes {
		if t.begun.before(moment{at: at}) && v.ready(t.pod) {
			v.served[t] = true
		}
	}
}

func (v *view) ready(p *pod) bool {
	for _, ready := range v.slices {
		if slices.Contains(ready, p.UID) {
			return true
		}
	}
	return false
}

// out are the pods that Refit has out, and how many may be: as many as the most generous of those who have begun it allows.
func (v *view) out(w *workload, at time.Time) (out []*take, allowed int) {
	for _, t := range w.takes {
		if t.most == 0 || t.lost || !v.served[t] || v.ready(t.pod) || !t.out(moment{at: at}) || t.unsure(moment{at: at}) || v.deleted(t.pod) {
			continue
		}
		replaced := !t.evicts && !t.pod.present(moment{at: at}) && w.lacks(moment{at: at}) == 0
		if replaced || slices.ContainsFunc(out, func(u *take) bool { return u.pod == t.pod }) {
			continue
		}
		out, allowed = append(out, t), max(allowed, t.most)
	}
	return out, allowed
}
