package podprobe

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
)

// maxAnnotation bounds the annotation with the probes, in bytes: all annotations of an object share 256 KiB.
const maxAnnotation = 64 << 10

// VirtualNode reports whether a node with these labels has no kubelet, and so no daemon.
func VirtualNode(labels map[string]string) bool {
	return labels[v1alpha1.LabelNodeType] == v1alpha1.NodeTypeVirtual
}

// annotated are the probes that fit into the annotation of a pod on a virtual node.
type annotated struct {
	markers    []string
	probes     []json.RawMessage
	conditions map[string]bool // that the probes write
	omitted    []string        // full names of those beyond the limit
}

// annotate takes those with a condition type, as results are reported by conditions.
func annotate(all []probeOfPod) annotated {
	a := annotated{conditions: map[string]bool{}}
	size := 0
	for _, p := range all {
		if p.PodConditionType == "" || a.conditions[p.PodConditionType] {
			continue
		}
		p.MarkerPolicy = nil
		content, err := json.Marshal(p.PodContainerProbe)
		if err != nil || size+len(content) > maxAnnotation || len(a.probes) == v1alpha1.MaxProbesOfPod {
			a.omitted = append(a.omitted, p.fullName())
			continue
		}
		size += len(content)
		a.conditions[p.PodConditionType] = true
		a.probes = append(a.probes, content)
		if !slices.Contains(a.markers, p.marker) {
			a.markers = append(a.markers, p.marker)
		}
	}
	return a
}

func (a annotated) annotations() map[string]string {
	content, err := json.Marshal(a.probes)
	if len(a.probes) == 0 || err != nil { // each of them has been encoded before
		return map[string]string{}
	}
	return map[string]string{
		v1alpha1.AnnotationPodProbe:           string(content),
		v1alpha1.AnnotationPodProbeMarkerList: strings.Join(a.markers, ","),
	}
}

// DesiredOnVirtualNode computes the fields of a pod on a virtual node: the annotations with its probes, and the labels and
// annotations that follow from the conditions which the prober there has written. The second result is the full names of
// the probes that are left out. They set nothing, as in Desired.
func DesiredOnVirtualNode(pod *corev1.Pod, markers []Marker, now time.Time) (fields Fields, omitted []string) {
	probes := resolvable(pod, markers)
	a := annotate(probes)
	written := slices.DeleteFunc(probes, func(p probeOfPod) bool { return !a.conditions[p.PodConditionType] })
	fields = desiredBy(written, pod, StatesOfConditions(pod, markers), now)
	fields.Conditions = nil
	addMissing(fields.Annotations, a.annotations())
	return fields, a.omitted
}
