package podprobe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1alpha1"
)

// Marker is a PodProbeMarker with its selector parsed and its probes validated.
type Marker struct {
	Namespace, Name string
	// Probes that are valid. An invalid probe does not affect the others.
	Probes []v1alpha1.PodContainerProbe
	// Faults are the errors of the spec, by field.
	Faults field.ErrorList

	selector labels.Selector
}

// Compile makes Markers from the PodProbeMarkers of one or more namespaces, ordered by namespace and name. Those that
// are being deleted are left out.
func Compile(all []v1alpha1.PodProbeMarker) []Marker {
	return CompileWith(all, NewMarker)
}

// CompileWith is Compile with another function in the place of NewMarker, which may know the Marker already.
func CompileWith(all []v1alpha1.PodProbeMarker, newMarker func(*v1alpha1.PodProbeMarker) Marker) []Marker {
	markers := make([]Marker, 0, len(all))
	for i := range all {
		if all[i].DeletionTimestamp == nil {
			markers = append(markers, newMarker(&all[i]))
		}
	}
	slices.SortFunc(markers, func(a, b Marker) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return markers
}

// NewMarker makes a Marker from a PodProbeMarker. It depends on the spec alone. The rules of the API are applied again, as
// an object may have been stored without them.
func NewMarker(of *v1alpha1.PodProbeMarker) Marker {
	m := Marker{Namespace: of.Namespace, Name: of.Name, selector: labels.Nothing()}
	spec := field.NewPath("spec")
	if faults := checkSelector(spec.Child("selector"), of.Spec.Selector); len(faults) > 0 {
		m.Faults = faults
	} else if selector, err := metav1.LabelSelectorAsSelector(of.Spec.Selector); err == nil {
		m.selector = selector
	}
	names, conditions := map[string]bool{}, map[string]bool{}
	for i, p := range of.Spec.Probes {
		path := spec.Child("probes").Index(i)
		faults := checkProbe(path, p, selectedKeys(of.Spec.Selector))
		switch {
		case i >= v1alpha1.MaxProbesOfMarker:
			faults = append(faults, field.TooMany(spec.Child("probes"), len(of.Spec.Probes), v1alpha1.MaxProbesOfMarker))
		case names[p.Name]:
			faults = append(faults, field.Duplicate(path.Child("name"), p.Name))
		case p.PodConditionType != "" && conditions[p.PodConditionType]:
			faults = append(faults, field.Duplicate(path.Child("podConditionType"), p.PodConditionType))
		}
		names[p.Name], conditions[p.PodConditionType] = true, true
		m.Faults = append(m.Faults, faults...)
		if len(faults) == 0 {
			m.Probes = append(m.Probes, p)
		}
		if i >= v1alpha1.MaxProbesOfMarker {
			break // all further ones have the same fault
		}
	}
	return m
}

// Selects reports whether the marker selects the pod, by namespace and labels.
func (m Marker) Selects(pod *corev1.Pod) bool {
	return m.Namespace == pod.Namespace && m.selector.Matches(labels.Set(pod.Labels))
}

// ExceedsPodLimit reports whether the markers together have more probes than one pod can have (MaxProbesOfPod).
func ExceedsPodLimit(markers []Marker) bool {
	probes := 0
	for _, m := range markers {
		probes += len(m.Probes)
	}
	return probes > v1alpha1.MaxProbesOfPod
}

// Probeable reports whether a pod can be probed: it is bound to a node, its init containers are done, and it has neither
// ended nor is it being deleted.
func Probeable(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || ended(pod) {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodInitialized {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func ended(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// FullName is the name of a marker's probe in a NodePodProbe. Neither part holds the separator, so a name belongs to
// exactly one marker of the pod's namespace.
func FullName(marker, probe string) string { return marker + "#" + probe }

// MarkerOf returns the marker of a probe's full name.
func MarkerOf(fullName string) (marker string, ok bool) {
	marker, _, ok = strings.Cut(fullName, "#")
	return marker, ok
}
