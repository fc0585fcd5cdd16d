package podprobe

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/result"
)

// Reasons of a marker's condition Ready.
const (
	ReasonProbing       = "Probing"
	ReasonNoPods        = "NoPods"
	ReasonInvalidSpec   = "InvalidSpec"
	ReasonNotResolvable = "ContainerOrPortNotFound"
	ReasonTooManyProbes = "TooManyProbes"
	ReasonPodTooLarge   = "PodTooLarge"
)

// Reasons of the condition Delayed.
const (
	ReasonDelayed = "ProbesDelayed"
	ReasonOnTime  = "ProbesOnTime"
)

// Surroundings is what the status of a marker depends on, apart from the marker.
type Surroundings struct {
	// Markers are the markers of the namespace. They share the limit of probes per pod.
	Markers []Marker
	// Pods are the pods of the namespace, or at least those that the marker selects.
	Pods []*corev1.Pod
	// Omitted are the pods that are not probed because the probes of their node exceed the limits of a NodePodProbe.
	Omitted map[types.UID]bool
	// Probes are the full names of the probes that the nodes have for the pods that are not Complete.
	Probes map[types.UID]map[string]bool
	// Delayed maps nodes that run exec probes less often than their periods say to a message.
	Delayed map[string]string
}

// Status computes the status of a marker: how many pods it matches, whether all of them can be probed, and whether the
// probes run on time.
func Status(marker *v1alpha1.PodProbeMarker, around Surroundings, now time.Time) v1alpha1.PodProbeMarkerStatus {
	m := NewMarker(marker)
	status := *marker.Status.DeepCopy()
	status.ObservedGeneration = marker.Generation
	pods := countPods(m, around)
	status.MatchedPods = int64(pods.matched)
	ready := metav1.Condition{
		Type: v1alpha1.ConditionPodProbeMarkerReady, Status: metav1.ConditionTrue, ObservedGeneration: marker.Generation,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)), Reason: ReasonProbing, Message: "all matching pods are being probed",
	}
	switch {
	case len(m.Errors) > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, ReasonInvalidSpec
		ready.Message = fmt.Sprintf("invalid probes are left out: %v", m.Errors.ToAggregate())
	case pods.unresolved > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, ReasonNotResolvable
		ready.Message = fmt.Sprintf("%d of %d pods lack the container or port of a probe, for example: %s", pods.unresolved, pods.matched, pods.example)
	case pods.limited > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, ReasonTooManyProbes
		ready.Message = fmt.Sprintf("%d of %d pods have more than %d probes: the last ones, by name of the marker, are left out",
			pods.limited, pods.matched, v1alpha1.MaxProbesOfPod)
	case pods.omitted > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, ReasonTooManyProbes
		ready.Message = fmt.Sprintf("%d of %d pods are not probed: the probes of all pods of their nodes exceed what one NodePodProbe can hold",
			pods.omitted, pods.matched)
	case pods.unknown > 0:
		ready.Status, ready.Reason = metav1.ConditionUnknown, ReasonPodTooLarge
		ready.Message = fmt.Sprintf("%d of %d pods are too large for the cache of refit-manager, and their nodes do not have all probes of the marker: "+
			"it is not known whether the pods have the containers and ports, for example: pod %s", pods.unknown, pods.matched, pods.large)
	case pods.matched == 0:
		ready.Reason, ready.Message = ReasonNoPods, "no initialized and running pod matches the selector"
	}
	ready.Message = foreign.Cut(ready.Message, result.MaxMessage)
	meta.SetStatusCondition(&status.Conditions, ready)
	setDelayed(&status, pods, now)
	return status
}

// setDelayed sets the condition Delayed. A marker whose probes were never delayed does not have the condition.
func setDelayed(status *v1alpha1.PodProbeMarkerStatus, pods podCount, now time.Time) {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionProbesDelayed, Status: metav1.ConditionFalse, ObservedGeneration: status.ObservedGeneration,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)), Reason: ReasonOnTime,
	}
	switch {
	case pods.delayed > 0:
		condition.Status, condition.Reason = metav1.ConditionTrue, ReasonDelayed
		condition.Message = foreign.Cut(fmt.Sprintf("exec probes of %d of %d pods are delayed, for example on node %s: %s",
			pods.delayed, pods.matched, pods.node, pods.delay), result.MaxMessage)
	case meta.FindStatusCondition(status.Conditions, condition.Type) == nil:
		return
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// podCount counts the pods that a marker matches, and the pods with problems among them. The examples do not depend on
// the order of the pods.
type podCount struct {
	matched, limited, unresolved, unknown, omitted, delayed int

	example     string // a pod that lacks a container or port
	large       string // a pod that is not complete and may lack one
	node, delay string // the node of a pod whose probes are delayed, and its message
}

func countPods(m Marker, around Surroundings) podCount {
	var c podCount
	overLimit := ExceedsPodLimit(around.Markers)
	execs := slices.ContainsFunc(m.Probes, func(p v1alpha1.PodContainerProbe) bool { return p.Probe.Exec != nil })
	for _, pod := range around.Pods {
		if !m.Selects(pod) || !Probeable(pod) {
			continue
		}
		c.matched++
		if overLimit {
			if _, omitted := probesOf(pod, around.Markers); omitted[m.Name] {
				c.limited++
			}
		}
		if around.Omitted[pod.UID] {
			c.omitted++
		}
		node := pod.Spec.NodeName
		if delay, delayed := around.Delayed[node]; delayed && execs {
			c.delayed++
			if c.node == "" || node < c.node {
				c.node, c.delay = node, delay
			}
		}
		c.look(m, pod, around.Probes[pod.UID])
	}
	return c
}

// look counts a pod that lacks the container or port of a probe. For a pod that is not complete, its node's probes show whether it does.
func (c *podCount) look(m Marker, pod *corev1.Pod, ofNode map[string]bool) {
	if !Complete(pod) {
		if slices.ContainsFunc(m.Probes, func(p v1alpha1.PodContainerProbe) bool { return !ofNode[FullName(m.Name, p.Name)] }) {
			c.unknown++
			if c.large == "" || pod.Name < c.large {
				c.large = pod.Name
			}
		}
		return
	}
	for _, p := range m.Probes {
		if _, err := resolve(pod, p); err != nil {
			c.unresolved++
			if c.example == "" || err.Error() < c.example {
				c.example = err.Error()
			}
			return
		}
	}
}
