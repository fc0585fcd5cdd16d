package clustercheck

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// Bounds of what one request costs the API server and the runtime. They are far above what a run shows, and far below
// what a loop without a pause does.
const (
	writesAtLeast     = 12              // of one request
	writesByContainer = 4               // more for each container
	writesByFault     = 4               // more for each fault in its way meanwhile
	writesInterval    = 2 * time.Second // one more for each while the request is open
	stopsAtLeast      = 6               // of one container
	stopsByFault      = 6
	stopsInterval     = time.Second
	busyInterval      = 10 * time.Second
	busyWrites        = 100 // of any object, by one of our programs
)

// volume checks that nothing is done over and over.
func (c check) volume() {
	for _, s := range c.StopsByID() {
		first, last := s.Calls[0], s.Calls[len(s.Calls)-1]
		most := stopsAtLeast + stopsByFault*c.faultsIn(c.nodeOf(s.ID), first.Begin, last.End) + int(last.End.Sub(first.Begin)/stopsInterval)
		if len(s.Calls) > most {
			c.Violate("volume", "container "+entry.Short(s.ID), fmt.Sprintf("stopped %d times, want %d at most", len(s.Calls), most), first.Line, last.Line)
		}
	}
	type object struct{ user, namespace, name string }
	writes := map[object][]entry.Write{}
	for _, w := range c.Writes {
		if w.Resource == entry.RequestResource && (w.User == c.Options.Daemon || w.User == c.Options.Manager) {
			o := object{w.User, w.Namespace, w.Name}
			writes[o] = append(writes[o], w)
		}
	}
	for _, r := range c.Requests {
		for _, user := range []string{c.Options.Daemon, c.Options.Manager} {
			all := writes[object{user, r.Namespace, r.Name}]
			end, ended := r.EndedAt()
			if !ended {
				end = c.End
			}
			most := writesAtLeast + writesByContainer*len(r.Spec().Containers) + int(end.Sub(r.Created.Received)/writesInterval)
			if len(all) > 0 {
				most += writesByFault * c.faultsIn(r.Node(), r.Created.Received, all[len(all)-1].Done)
			}
			if len(all) > most {
				c.Violate("volume", "request "+r.String(), fmt.Sprintf("written %d times by %s, want %d at most", len(all), user, most),
					all[0].Line, all[len(all)-1].Line)
			}
		}
	}
}

// busy checks that no program of ours writes to an object, or tries to, again and again without a pause.
func (c check) busy() {
	type object struct{ user, node, resource, namespace, name string }
	writes := map[object][]entry.Write{} // of the last interval
	found := map[object]bool{}
	for _, w := range c.Writes { // in the order of their ends
		o := object{w.User, w.Node, w.Resource, w.Namespace, w.Name}
		if w.User != c.Options.Daemon && w.User != c.Options.Manager || w.Name == "" || found[o] {
			continue
		}
		first := slices.IndexFunc(writes[o], func(before entry.Write) bool { return w.Received.Sub(before.Received) < busyInterval })
		if first < 0 {
			first = len(writes[o])
		}
		writes[o] = append(writes[o][first:], w)
		if found[o] = len(writes[o]) > busyWrites; found[o] {
			c.Violate("volume", o.resource+" "+o.namespace+"/"+o.name, fmt.Sprintf("written %d times within %s by %s", len(writes[o]), busyInterval, o.user),
				writes[o][0].Line, w.Line)
		}
	}
}

// nodeOf is the node of a container; empty if nobody has said whose it is.
func (c check) nodeOf(id string) string {
	if known := c.Containers[id]; known != nil && c.Pods[known.PodUID] != nil {
		return c.Pods[known.PodUID].Node()
	}
	return ""
}

// faultsIn is how many faults were in the way of requests of that node.
func (c check) faultsIn(node string, begin, end time.Time) int {
	found := 0
	for _, f := range c.Faults {
		if f.Impedes && f.On(node) && f.Overlaps(begin, end) {
			found++
		}
	}
	return found
}
