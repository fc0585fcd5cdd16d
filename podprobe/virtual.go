package podprobe

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
)

// maxAnnotation bounds what a pod on a virtual node is told, in bytes: all annotations of an object share 256 KiB.
const maxAnnotation = 64 << 10

// Virtual reports whether a node with these labels is served by no kubelet, and so has no daemon.
func Virtual(labels map[string]string) bool {
	return labels[v1alpha1.LabelNodeType] == v1alpha1.NodeTypeVirtual
}

// Annotations tell a pod on a virtual node of its probes: those with a condition, which is how the results come back.
// They are empty for a pod without such probes. Those for which there is no room are left out: the second result is
// their full names.
func Annotations(pod *corev1.Pod, markers []Marker) (annotations map[string]string, left []string) {
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
			p.MarkerPolicy = nil
			content, err := json.Marshal(p)
			if err != nil || size+len(content) > maxAnnotation || len(probes) == v1alpha1.MaxProbesOfPod {
				left = append(left, FullName(m.Name, p.Name))
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
		return map[string]string{}, left
	}
	return map[string]string{
		v1alpha1.AnnotationPodProbe:           string(content),
		v1alpha1.AnnotationPodProbeMarkerList: strings.Join(names, ","),
	}, left
}

// WantVirtual is what a pod on a virtual node is to carry: what it is told to probe, and the labels and annotations by
// the conditions that whoever probes there has written. The probes that it cannot be told of are the second result.
func WantVirtual(pod *corev1.Pod, markers []Marker, now time.Time) (marks Marks, left []string) {
	marks = Want(pod, markers, StatesOfConditions(pod, markers), now)
	marks.Conditions = nil
	annotations, left := Annotations(pod, markers)
	addMissing(marks.Annotations, annotations)
	return marks, left
}
