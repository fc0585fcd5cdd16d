package clustercheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// crashes checks that our programs ended only when they were killed or told to: whatever the runtime or the API server
// do, they go on.
func (c check) crashes() {
	near := func(ended *corev1.ContainerStateTerminated, before time.Duration, is func(entry.Fault) bool) bool {
		return slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
			return is(f) && f.Overlaps(ended.FinishedAt.Add(-before), ended.FinishedAt.Add(killedLate))
		})
	}
	killed := func(w entry.Write, ended *corev1.ContainerStateTerminated, kinds ...string) bool {
		of := func(kinds ...string) bool {
			return near(ended, 0, func(f entry.Fault) bool { return slices.Contains(kinds, f.Kind) && f.On(w.Pod.Spec.NodeName) })
		}
		missed := ended.Reason == unknown && of(entry.KindRuntimeRestart) // as the runtime was away when the container ended
		return (ended.ExitCode == sigkilled || missed) && of(kinds...) || missed && w.Pod.DeletionTimestamp != nil
	}
	c.crashesOf(c.ofProgram(c.Options.Daemon), func(w entry.Write, ended *corev1.ContainerStateTerminated) bool {
		return killed(w, ended, entry.KindDaemonKill)
	})
	c.crashesOf(c.ofProgram(c.Options.Manager), func(w entry.Write, ended *corev1.ContainerStateTerminated) bool {
		// A manager that cannot renew its lease ends itself, so that no two lead.
		deposed := ended.ExitCode == 1 && near(ended, leaseTime, func(f entry.Fault) bool {
			return f.OfControlPlane() || f.Kind == entry.KindManagerAway || f.Kind == entry.KindManagerPause
		})
		return deposed || killed(w, ended, entry.KindManagerKill, entry.KindManagerPause)
	})
	sidecar := func(_ entry.Write, status corev1.ContainerStatus) bool { return status.Name == sidecarName }
	c.crashesOf(sidecar, func(w entry.Write, ended *corev1.ContainerStateTerminated) bool {
		// A start that was broken off is no end of the program.
		brokenOff := ended.Reason == startError && near(ended, leaseTime, func(f entry.Fault) bool {
			return (f.Kind == entry.KindRuntimeRestart || f.Kind == entry.KindKubeletRestart) && f.On(w.Pod.Spec.NodeName)
		})
		return brokenOff || killed(w, ended, entry.KindSidecarKill)
	})
}

const (
	sidecarName = "refit-sidecar"
	// startError is containerd's reason for a container that it could not start.
	startError = "StartError"
	// unknown is its reason for one of whose end it knows nothing.
	unknown = "Unknown"
)

// ofProgram reports whether a status is of a container of one of our programs, by its account.
func (c check) ofProgram(user string) func(entry.Write, corev1.ContainerStatus) bool {
	return func(w entry.Write, _ corev1.ContainerStatus) bool { return c.of(user, w) }
}

// leaseTime is for how long a manager may try to renew its lease after an outage has begun, and notice that it is over.
const leaseTime = 30 * time.Second

// of reports whether the write is of the status of a pod of one of our programs.
func (c check) of(user string, w entry.Write) bool {
	_, account, _ := strings.Cut(user, "serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	return w.Pod != nil && w.Namespace == namespace && strings.HasPrefix(w.Name, name+"-")
}

func (c check) crashesOf(of func(entry.Write, corev1.ContainerStatus) bool, excused func(entry.Write, *corev1.ContainerStateTerminated) bool) {
	seen, begin := map[string]bool{}, c.begin()
	earlier := func(ended *corev1.ContainerStateTerminated) bool { // of an earlier run on the same cluster
		return !ended.FinishedAt.IsZero() && ended.FinishedAt.Time.Before(begin.Truncate(time.Second))
	}
	for _, w := range c.Writes {
		if w.Pod == nil {
			continue
		}
		for _, status := range w.Pod.Status.ContainerStatuses {
			if !of(w, status) {
				continue
			}
			for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
				if ended == nil || seen[ended.ContainerID] || toldToEnd(w, ended) || earlier(ended) {
					continue
				}
				if ended.Reason != oomKilled && excused(w, ended) || c.lost(w, ended) {
					continue
				}
				seen[ended.ContainerID] = true
				c.Violate("crash", "pod "+w.Namespace+"/"+w.Name,
					fmt.Sprintf("container %s ended with exit code %d, %s", entry.Short(ended.ContainerID), ended.ExitCode, ended.Reason), w.Line)
			}
		}
	}
}

// begin of the records.
func (c check) begin() time.Time {
	var begin time.Time
	for _, w := range c.Writes {
		if begin.IsZero() || w.Received.Before(begin) {
			begin = w.Received
		}
	}
	return begin
}

// lost reports whether the container ended with its node, of which the runtime knows nothing.
func (c check) lost(w entry.Write, ended *corev1.ContainerStateTerminated) bool {
	return ended.Reason == unknown && slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindNodeLost && f.On(w.Pod.Spec.NodeName) && !w.Received.Before(f.Begin)
	})
}

// oomKilled is kubelet's reason for a container that used more memory than its limit.
const oomKilled = "OOMKilled"

const (
	// sigkilled and sigtermed are exit codes after a signal.
	sigkilled = 128 + 9
	sigtermed = 128 + 15
	// killedLate is how long after an end, whose time has whole seconds, the journal may have the begin of the fault.
	killedLate = 2 * time.Second
)

// toldToEnd reports whether the container ended with its pod. In a pod that stays kubelet ends a container that is not alive.
func toldToEnd(w entry.Write, ended *corev1.ContainerStateTerminated) bool {
	return w.Pod.DeletionTimestamp != nil && ended.Reason != oomKilled && slices.Contains([]int32{0, sigkilled, sigtermed}, ended.ExitCode)
}
