package podprobe

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/result"
)

// Reasons of a marker's condition Ready.
const (
	ReasonProbing       = "Probing"
	ReasonNoPods        = "NoPods"
	ReasonInvalidSpec   = "InvalidSpec"
	ReasonNotResolvable = "ContainerOrPortNotFound"
	ReasonTooManyProbes = "TooManyProbes"
)

// Status computes the status of a marker: how many pods it matches, and whether all of them can be probed.
//
// The pods are those of the marker's namespace, or at least those that it selects; all are the markers of the namespace,
// with which it shares the limit of probes per pod.
func Status(marker *v1alpha1.PodProbeMarker, all []Marker, pods []*corev1.Pod, now time.Time) v1alpha1.PodProbeMarkerStatus {
	m := NewMarker(marker)
	status := *marker.Status.DeepCopy()
	status.ObservedGeneration = marker.Generation
	status.MatchedPods = 0
	overLimit := ExceedsPodLimit(all)
	unresolved, limited, example := 0, 0, ""
	for _, pod := range pods {
		if !m.Selects(pod) || !Probeable(pod) {
			continue
		}
		status.MatchedPods++
		if overLimit {
			if _, omitted := probesOf(pod, all); omitted[m.Name] {
				limited++
			}
		}
		for _, p := range m.Probes {
			if _, err := resolve(pod, p); err != nil {
				unresolved++
				if example == "" || err.Error() < example { // the same one for every order of the pods
					example = err.Error()
				}
				break
			}
		}
	}
	ready := metav1.Condition{
		Type: v1alpha1.ConditionPodProbeMarkerReady, Status: metav1.ConditionTrue, ObservedGeneration: marker.Generation,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)), Reason: ReasonProbing, Message: "all matching pods are being probed",
	}
	switch {
	case len(m.Faults) > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, ReasonInvalidSpec
		ready.Message = fmt.Sprintf("invalid probes are left out: %v", m.Faults.ToAggregate())
	case unresolved > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, ReasonNotResolvable
		ready.Message = fmt.Sprintf("%d of %d pods lack the container or port of a probe, for example: %s", unresolved, status.MatchedPods, example)
	case limited > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, ReasonTooManyProbes
		ready.Message = fmt.Sprintf("%d of %d pods have more than %d probes: the last ones, by name of the marker, are left out",
			limited, status.MatchedPods, v1alpha1.MaxProbesOfPod)
	case status.MatchedPods == 0:
		ready.Reason, ready.Message = ReasonNoPods, "no initialized and running pod matches the selector"
	}
	ready.Message = result.Cut(ready.Message, result.MaxMessage)
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}
