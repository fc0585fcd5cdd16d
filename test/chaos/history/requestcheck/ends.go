package requestcheck

import (
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// lostEnd is the daemon's write of the end of a request whose answer was lost, as the daemon was killed, if what followed
// shows that it was stored: the manager has deleted the request, or a later one of the same pod has begun.
func (c check) lostEnd(r *model.Request) *entry.Write {
	for i := range r.Unsure {
		w := &r.Unsure[i]
		if !w.Ends || w.User != c.Options.Daemon {
			continue
		}
		deleted := r.Deleted != nil && r.Deleted.User == c.Options.Manager && r.Deleted.Received.After(w.Received)
		if deleted || slices.ContainsFunc(c.Requests, func(later *model.Request) bool {
			begun := later.Begun()
			return later.PodUID == r.PodUID && later.Created.Received.After(r.Created.Done) && begun != nil && begun.Received.After(w.Done)
		}) {
			return w
		}
	}
	return nil
}

// untilWritten are the faults, restarts of the API server until Refit has written to a request again, for a pause of its clients
// at most: at a load of 50 on two cores it answered others up to 47 s before.
func (c check) untilWritten(faults []entry.Fault) []entry.Fault {
	faults = slices.Clone(faults)
	for i := range faults {
		if !faults[i].LosesLines() {
			continue
		}
		answers, until := faults[i].End, faults[i].End.Add(entry.ClientPause)
		for _, w := range c.Writes {
			ours := w.Resource == entry.RequestResource && (w.User == c.Options.Daemon || w.User == c.Options.Manager)
			if ours && w.Stored() && w.Received.After(answers) && w.Done.Before(until) {
				until = w.Done
			}
		}
		faults[i].End = until
	}
	return faults
}

// slow is how long the API server may take for a write.
const slow = time.Second

// slowWrites are the times in which the API server took long for a write of the request: those do not count.
func (c check) slowWrites(r *model.Request) []entry.Fault {
	var faults []entry.Fault
	for _, w := range c.Writes {
		if w.Resource == entry.RequestResource && w.Namespace == r.Namespace && w.Name == r.Name && w.Done.Sub(w.Received) > slow {
			faults = append(faults, entry.Fault{Kind: "slow write", Begin: w.Received, End: w.Done, Impedes: true})
		}
	}
	return faults
}

// slowReports are the times from the start of a container of the request until kubelet first reported it, if that took long:
// nothing could be done then. A deadline does not wait for kubelet, so it counts them.
func (c check) slowReports(r *model.Request) []entry.Fault {
	p := c.Pods[r.PodUID]
	if p == nil {
		return nil
	}
	var faults []entry.Fault
	reported := map[string]bool{}
	for _, w := range p.Statuses {
		for _, status := range slices.Concat(w.Pod.Status.ContainerStatuses, w.Pod.Status.InitContainerStatuses) {
			if reported[status.ContainerID] || status.State.Running == nil {
				continue
			}
			reported[status.ContainerID] = true
			if began := status.State.Running.StartedAt.Time; w.Received.Sub(began) > slow {
				faults = append(faults, entry.Fault{Kind: "slow report", Begin: began, End: w.Received, Impedes: true})
			}
		}
	}
	return faults
}

// patience is the time the request asks for itself and what is added for the machine.
func (c check) patience(r *model.Request) time.Duration {
	each := c.Grace(r)
	patience := c.Options.Patience
	if strategy := r.Spec().Strategy; strategy != nil {
		each += time.Duration(strategy.MinStartedSeconds) * time.Second
		if strategy.UnreadyGracePeriodSeconds != nil {
			patience += time.Duration(*strategy.UnreadyGracePeriodSeconds) * time.Second
		}
	}
	return patience + time.Duration(len(r.Spec().Containers))*each
}
