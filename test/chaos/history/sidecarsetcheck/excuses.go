package sidecarsetcheck

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// doubt reports whether versions of the pod may be missing before the newest.
func (f *Follower) doubt(p *pod, since time.Time) bool { return f.doubtAt(p, since, p.At) }

func (f *Follower) doubtAt(p *pod, since, until time.Time) bool {
	if f.Records == nil || f.Records.Pods[string(p.Pod.UID)] == nil {
		return false
	}
	return slices.ContainsFunc(f.Records.Pods[string(p.Pod.UID)].Unsure, func(w entry.Write) bool {
		return !w.Done.Before(since) && w.Received.Before(until)
	})
}

// breaksStartsOff reports whether kubelet or the runtime was restarted, or the runtime had no room on its disk: a container that was
// being started then is ended.
func breaksStartsOff(fault entry.Fault) bool {
	return slices.Contains([]string{entry.KindRuntimeRestart, entry.KindKubeletRestart, entry.KindNodeDiskFull}, fault.Kind)
}

// otherwiseEnded reports whether the node of the pod was lost, or the start of the container was broken off.
func (f *Follower) otherwiseEnded(p *pod, before *corev1.ContainerStatus, since time.Time) bool {
	const reported = 30 * time.Second // kubelet may have reported an end before the fault is over
	return f.Records != nil && slices.ContainsFunc(f.Records.Faults, func(fault entry.Fault) bool {
		if !fault.On(p.Pod.Spec.NodeName) || !fault.Overlaps(since.Add(-reported), p.At) {
			return false
		}
		return fault.Kind == entry.KindNodeLost || breaksStartsOff(fault) && before.State.Running == nil
	})
}

// brokenOff reports whether a start may have been broken off during the update of the pod.
func (f *Follower) brokenOff(p *pod) bool {
	return f.Records != nil && slices.ContainsFunc(f.Records.Faults, func(fault entry.Fault) bool {
		return fault.On(p.Pod.Spec.NodeName) && fault.Overlaps(p.since, p.At) && breaksStartsOff(fault)
	})
}

// ordered reports whether somebody else has the container restarted: a request, or the SidecarSet that has injected it.
func (f *Follower) ordered(p *pod, before *corev1.ContainerStatus) bool {
	if f.Records == nil {
		return false
	}
	requested := slices.ContainsFunc(f.Records.Requests, func(r *model.Request) bool {
		return r.PodUID == string(p.Pod.UID) && r.Created.Received.Before(p.At) &&
			slices.ContainsFunc(r.Spec().Containers, func(c v1beta1.ContainerRecreateRequestContainer) bool {
				return c.Name == before.Name && c.StatusContext != nil && c.StatusContext.ContainerID == before.ContainerID
			})
	})
	return requested || slices.ContainsFunc(p.Pod.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == before.Name && v1beta1.IsInjected(&c) && before.Image != "" && before.Image != c.Image
	})
}
