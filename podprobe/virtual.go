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

// VirtualNodeAnnotations are the annotations with the probes of a pod on a virtual node: those with a condition type, as
// results are reported by conditions. They are empty for a pod without such probes. Probes of containers or ports that the
// pod does not have are left out, as Status says. Probes beyond the limit are left out too; the second result is their full
// names.
func VirtualNodeAnnotations(pod *corev1.Pod, markers []Marker) (annotations map[string]string, omitted []string) {
	var names []string
	var probes []json.RawMessage
	conditions := map[string]bool{}
	size := 0
	for _, m := range markers {
		if !m.Selects(pod) {
			continue
		}
		for _, p := range m.Probes {
			if p.PodConditionType == "" || conditions[p.PodConditionType] {
				continue
			}
			if _, err := resolve(pod, p); err != nil {
				continue
			}
			p.MarkerPolicy = nil
			content, err := json.Marshal(p)
			if err != nil || size+len(content) > maxAnnotation || len(probes) == v1alpha1.MaxProbesOfPod {
				omitted = append(omitted, FullName(m.Name, p.Name))
				continue
			}
			size += len(content)
			conditions[p.PodConditionType] = true
			probes = append(probes, content)
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	content, err := json.Marshal(probes)
	if len(probes) == 0 || err != nil { // each of them has been encoded before
		return map[string]string{}, omitted
	}
	return map[string]string{
		v1alpha1.AnnotationPodProbe:           string(content),
		v1alpha1.AnnotationPodProbeMarkerList: strings.Join(names, ","),
	}, omitted
}

// DesiredOnVirtualNode computes the fields of a pod on a virtual node: the annotations with its probes, and the labels and
// annotations that follow from the conditions which the prober there has written. The second result is the full names of
// the probes that are left out.
func DesiredOnVirtualNode(pod *corev1.Pod, markers []Marker, now time.Time) (fields Fields, omitted []string) {
	fields = Desired(pod, markers, StatesOfConditions(pod, markers), now)
	fields.Conditions = nil
	annotations, omitted := VirtualNodeAnnotations(pod, markers)
	addMissing(fields.Annotations, annotations)
	return fields, omitted
}
