package podprobe

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

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
	markers []string
	probes  []json.RawMessage
	writers map[string]probeOfPod // by the condition that they write
	omitted []string              // full names of those beyond the limit, and of those whose condition another one writes
}

// annotate takes those with a condition type, as results are reported by conditions. Of two with one type the first is taken.
func annotate(all []probeOfPod) annotated {
	a := annotated{writers: map[string]probeOfPod{}}
	size := 0
	for _, p := range all {
		if p.PodConditionType == "" || a.has(p) {
			continue
		}
		if _, taken := a.writers[p.PodConditionType]; taken {
			a.omitted = append(a.omitted, p.fullName())
			continue
		}
		p.MarkerPolicy = nil
		content, err := json.Marshal(p.PodContainerProbe)
		if err != nil || size+len(content) > maxAnnotation || len(a.probes) == v1alpha1.MaxProbesOfPod {
			a.omitted = append(a.omitted, p.fullName())
			continue
		}
		size += len(content)
		a.writers[p.PodConditionType] = p
		a.probes = append(a.probes, content)
		if !slices.Contains(a.markers, p.marker) {
			a.markers = append(a.markers, p.marker)
		}
	}
	return a
}

// has reports whether the probe, or one that does the same, writes the condition.
func (a annotated) has(p probeOfPod) bool {
	w, ok := a.writers[p.PodConditionType]
	return ok && w.ContainerName == p.ContainerName && equality.Semantic.DeepEqual(w.Probe, p.Probe)
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
	written := slices.DeleteFunc(probes, func(p probeOfPod) bool { return !a.has(p) })
	fields = desiredBy(written, pod, StatesOfConditions(pod, markers), now)
	fields.Conditions = nil
	addMissing(fields.Annotations, a.annotations())
	return fields, a.omitted
}
