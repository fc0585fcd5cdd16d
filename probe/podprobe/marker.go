package podprobe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
)

// Marker is a PodProbeMarker with its selector parsed and its probes validated.
type Marker struct {
	Namespace, Name string
	// Probes are the valid probes. An invalid probe does not affect the others.
	Probes []v1alpha1.PodContainerProbe
	// Errors are the errors of the spec, by field.
	Errors field.ErrorList

	selector labels.Selector
}

// Compile returns the Markers of the PodProbeMarkers of one or more namespaces, ordered by namespace and name. It
// leaves out markers that are being deleted.
func Compile(all []v1alpha1.PodProbeMarker) []Marker {
	return CompileWith(all, NewMarker)
}

// CompileWith is like Compile, but calls newMarker, which may return a cached Marker, instead of NewMarker.
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

// NewMarker returns the Marker of a PodProbeMarker. It only depends on the spec. It checks the rules of the API again,
// because the object may have been stored without them.
func NewMarker(of *v1alpha1.PodProbeMarker) Marker {
	m := Marker{Namespace: of.Namespace, Name: of.Name, selector: labels.Nothing()}
	spec := field.NewPath("spec")
	if errs := checkSelector(spec.Child("selector"), of.Spec.Selector); len(errs) > 0 {
		m.Errors = errs
	} else if selector, err := foreign.Selector(of.Spec.Selector); err != nil {
		m.Errors = field.ErrorList{field.Forbidden(spec.Child("selector"), err.Error())}
	} else {
		m.selector = selector
	}
	names, conditions := map[string]bool{}, map[string]bool{}
	for i, p := range of.Spec.Probes {
		path := spec.Child("probes").Index(i)
		errs := checkProbe(path, p, selectedKeys(of.Spec.Selector))
		switch {
		case i >= v1alpha1.MaxProbesOfMarker:
			errs = append(errs, field.TooMany(spec.Child("probes"), len(of.Spec.Probes), v1alpha1.MaxProbesOfMarker))
		case names[p.Name]:
			errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
		case p.PodConditionType != "" && conditions[p.PodConditionType]:
			errs = append(errs, field.Duplicate(path.Child("podConditionType"), p.PodConditionType))
		}
		names[p.Name], conditions[p.PodConditionType] = true, true
		m.Errors = append(m.Errors, errs...)
		if len(errs) == 0 {
			m.Probes = append(m.Probes, p)
		}
		if i >= v1alpha1.MaxProbesOfMarker {
			break // all further ones have the same error
		}
	}
	return m
}

// Selects reports whether the marker selects the pod, by namespace and labels.
func (m Marker) Selects(pod *corev1.Pod) bool {
	return m.Namespace == pod.Namespace && m.selector.Matches(labels.Set(pod.Labels))
}

// ExceedsPodLimit reports whether the markers together have more probes than a pod may have (MaxProbesOfPod).
func ExceedsPodLimit(markers []Marker) bool {
	probes := 0
	for _, m := range markers {
		probes += len(m.Probes)
	}
	return probes > v1alpha1.MaxProbesOfPod
}

// Probeable reports whether a pod can be probed: it is bound to a node, its init containers have completed, it has not
// ended, and it is not being deleted.
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

// FullName returns the name of a marker's probe in a NodePodProbe. Neither part contains the separator, so a name
// belongs to exactly one marker of the pod's namespace.
func FullName(marker, probe string) string { return marker + "#" + probe }

// MarkerOf returns the name of the marker in a full name.
func MarkerOf(fullName string) (marker string, ok bool) {
	marker, _, ok = strings.Cut(fullName, "#")
	return marker, ok
}
