package entry

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Fault is something the run broke, or did, for a time.
type Fault struct {
	Kind   string    `json:"kind"`
	Begin  time.Time `json:"begin"`
	End    time.Time `json:"end"` // when what was broken worked again
	Detail string    `json:"detail,omitempty"`
	// Node it was confined to; empty if it was of the control plane or of every node.
	Node string `json:"node,omitempty"`
	// Impedes: requests could not be carried out as fast as usual meanwhile.
	Impedes bool `json:"impedes,omitempty"`

	// Line of the record.
	Line Line `json:"-"`
}

// The kinds of faults that mean something to the judge. Others only have to be there in sufficient number.
const (
	// KindRuntimeRestart makes containerd forget which containers it has sent their stop signal.
	KindRuntimeRestart = "containerd-restart"
	// KindAPIServerKill loses the audit lines of the writes under way.
	KindAPIServerKill = "apiserver-kill"
	// KindAPIServerStop loses them too: an API server that is told to end does not finish all of them.
	KindAPIServerStop = "apiserver-stop"
	// KindKubeletRestart makes the runtime break off the starts that kubelet waits for.
	KindKubeletRestart = "kubelet-restart"
	// KindCall are calls to the runtime that go wrong.
	KindCall = "cri-call"
	// KindAbsent is a time with neither manager nor daemon, for I12.
	KindAbsent = "absent"
	// KindCertificates is another certificate of the webhooks, of another authority. It breaks nothing.
	KindCertificates = "certificates"
	// KindManagerAway is a time in which the webhooks of every manager fail or do not answer.
	KindManagerAway = "manager-away"
	// The faults of pods whose sidecar updates files: an end of the sidecar, or of the program that it signals, a full disk,
	// few files and threads, and the least priority beside processes that fork all the time.
	KindSidecarKill  = "sidecar-kill"
	KindWatchedKill  = "watched-kill"
	KindDiskFull     = "disk-full"
	KindSidecarLimit = "sidecar-limit"
	KindSidecarNice  = "sidecar-nice"
	// KindThrottle is a daemon with hardly any CPU time.
	KindThrottle = "daemon-throttle"
	// KindNodeLost is a node whose processes have all ended at once, the processes of its pods included.
	KindNodeLost = "node-lost"
	// KindNodeDiskFull is a node whose container runtime has no room on its disk.
	KindNodeDiskFull = "node-disk-full"
	// KindDaemonKill is an end of a daemon.
	KindDaemonKill = "daemon-kill"
	// KindManagerKill is an end of the manager that leads.
	KindManagerKill = "manager-kill"
	// KindManagerPause is a manager that leads and is suspended until another one does.
	KindManagerPause = "manager-pause"
	// KindSlowWebhook is a time in which the webhooks answer, but slowly.
	KindSlowWebhook = "webhook-slow"
	// KindLargePods are many large objects at once.
	KindLargePods = "large-pods"
)

// ParseFaults reads the run's journal.
func ParseFaults(record string, in io.Reader) ([]Fault, error) {
	return parse(record, in, func(fault Fault, line Line) (*Fault, error) {
		if fault.Kind == "" || fault.Begin.IsZero() || fault.End.Before(fault.Begin) {
			return nil, fmt.Errorf("fault %+v: want a kind, and an end after the begin", fault)
		}
		fault.Line = line.of(fault.Begin, "%s %s for %s", fault.Kind, fault.Detail, fault.End.Sub(fault.Begin).Round(time.Millisecond))
		return &fault, nil
	})
}

// On reports whether the fault was on that node; an empty name is any node.
func (f Fault) On(node string) bool { return f.Node == "" || node == "" || f.Node == node }

// OfControlPlane reports whether the API server did not answer, or took long for what it was given.
func (f Fault) OfControlPlane() bool {
	return strings.HasPrefix(f.Kind, "apiserver-") || strings.HasPrefix(f.Kind, "etcd-") || f.Kind == KindLargePods
}

// LosesLines reports whether audit lines of the writes under way at its begin may be missing.
func (f Fault) LosesLines() bool { return f.Kind == KindAPIServerKill || f.Kind == KindAPIServerStop }

// ClientPause is the longest pause of client-go between two attempts to list or watch, which it takes when the API server was away
// for about a minute (tools/cache/reflector.go: [30,60) s).
const ClientPause = time.Minute

// OfManagers reports whether managers were away or slow. What a daemon has begun does not depend on them.
func (f Fault) OfManagers() bool {
	return slices.Contains([]string{KindManagerAway, KindManagerKill, KindManagerPause, KindSlowWebhook}, f.Kind)
}

// Overlaps reports whether a part of the fault was in that time.
func (f Fault) Overlaps(begin, end time.Time) bool {
	return !f.Begin.After(end) && !f.End.Before(begin)
}

// Unimpeded is how much of the time from begin to end no fault was in the way of what is done on a node.
func Unimpeded(faults []Fault, node string, begin, end time.Time) time.Duration {
	free := time.Duration(0)
	for at := begin; at.Before(end); {
		until, impeded := end, false
		for _, fault := range faults {
			switch {
			case !fault.Impedes || !fault.On(node) || !fault.End.After(at):
			case !fault.Begin.After(at):
				if !impeded || fault.End.After(until) {
					until, impeded = fault.End, true
				}
			case !impeded && fault.Begin.Before(until):
				until = fault.Begin
			}
		}
		if until.After(end) {
			until = end
		}
		if !impeded {
			free += until.Sub(at)
		}
		at = until
	}
	return free
}
