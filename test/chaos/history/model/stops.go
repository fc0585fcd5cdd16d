package model

import (
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// Stop is all calls to stop one container.
type Stop struct {
	ID    string
	Calls []entry.Call
}

// StopsByID are the stops in the order of their first calls.
func (m *Model) StopsByID() []Stop {
	byID := map[string]int{}
	var stops []Stop
	for _, call := range m.Calls {
		if call.Method != "StopContainer" {
			continue
		}
		i, known := byID[call.ContainerID]
		if !known {
			i = len(stops)
			byID[call.ContainerID] = i
			stops = append(stops, Stop{ID: call.ContainerID})
		}
		stops[i].Calls = append(stops[i].Calls, call)
	}
	for _, s := range stops {
		slices.SortFunc(s.Calls, func(a, b entry.Call) int { return a.Begin.Compare(b.Begin) })
	}
	return stops
}

// HookTime is how long a stop may take to reach the runtime after it was decided: its preStop hook comes first, for
// up to the grace period.
func (m *Model) HookTime(r *Request) time.Duration {
	if !slices.ContainsFunc(r.Spec().Containers, func(s v1beta1.ContainerRecreateRequestContainer) bool { return s.PreStop != nil }) {
		return 0
	}
	return m.Grace(r)
}

// Grace is the grace period of the stops for a request.
func (m *Model) Grace(r *Request) time.Duration {
	seconds := int64(30)
	if p := m.Pods[r.PodUID]; p != nil && len(p.Statuses) > 0 && p.Statuses[0].Pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *p.Statuses[0].Pod.Spec.TerminationGracePeriodSeconds
	}
	if strategy := r.Spec().Strategy; strategy != nil && strategy.TerminationGracePeriodSeconds != nil {
		seconds = *strategy.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

// FirstStop is the first call to stop a container.
func (m *Model) FirstStop(id string) *entry.Call {
	var first *entry.Call
	for i := range m.Calls {
		call := &m.Calls[i]
		if call.Method == "StopContainer" && call.ContainerID == entry.BareID(id) && (first == nil || call.Begin.Before(first.Begin)) {
			first = call
		}
	}
	return first
}
