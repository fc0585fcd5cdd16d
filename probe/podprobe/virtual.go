package podprobe

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/must"
)

// maxAnnotation limits the annotation with the probes, in bytes: all annotations of an object share 256 KiB.
const maxAnnotation = 64 << 10

// VirtualNode reports whether a node with these labels is a virtual node, which has no kubelet and so no daemon.
func VirtualNode(labels map[string]string) bool {
	return labels[v1alpha1.LabelNodeType] == v1alpha1.NodeTypeVirtual
}

// annotated holds the probes that fit into the annotation of a pod on a virtual node.
type annotated struct {
	markers []string
	probes  []json.RawMessage
	writers map[string]probeOfPod // by the condition that they write
	omitted []string              // full names of probes beyond the limit, and of probes whose condition another probe writes
}

// annotate selects the probes with a condition type, because results are reported by conditions. Of two with one type
// it takes the first.
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
		content := must.JSON(p.PodContainerProbe)
		if size+len(content) > maxAnnotation || len(a.probes) == v1alpha1.MaxProbesOfPod {
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

// has reports whether this probe, or an equal one, writes the condition.
func (a annotated) has(p probeOfPod) bool {
	w, ok := a.writers[p.PodConditionType]
	return ok && w.ContainerName == p.ContainerName && equality.Semantic.DeepEqual(w.Probe, p.Probe)
}

func (a annotated) annotations() map[string]string {
	if len(a.probes) == 0 {
		return map[string]string{}
	}
	return map[string]string{
		v1alpha1.AnnotationPodProbe:           string(must.JSON(a.probes)),
		v1alpha1.AnnotationPodProbeMarkerList: strings.Join(a.markers, ","),
	}
}

// AtCreation returns the annotations with the probes of a new pod that may be bound to a virtual node. They are empty
// if no marker selects the pod.
func AtCreation(pod *corev1.Pod, markers []Marker) map[string]string {
	return annotate(resolvable(pod, markers)).annotations()
}

// DesiredOnVirtualNode computes the fields of a pod on a virtual node: the annotations with its probes, and the labels
// and annotations that result from the conditions written by the prober there. The second result is the full names of
// omitted probes. As in Desired, these set nothing.
func DesiredOnVirtualNode(pod *corev1.Pod, markers []Marker, now time.Time) (fields Fields, omitted []string) {
	probes := resolvable(pod, markers)
	a := annotate(probes)
	written := slices.DeleteFunc(probes, func(p probeOfPod) bool { return !a.has(p) })
	fields = desiredBy(written, pod, StatesOfConditions(pod, markers), now)
	fields.Conditions = nil
	addMissing(fields.Annotations, a.annotations())
	return fields, a.omitted
}
