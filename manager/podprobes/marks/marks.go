// Package marks finds which labels and annotations the API server takes for a pod. It holds no client: how they are tried
// is the caller's.
package marks

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/podprobe"
)

// Mark is a label or an annotation of a pod.
type Mark struct {
	Label      bool
	Key, Value string
}

// String names it, without its value.
func (m Mark) String() string {
	if m.Label {
		return "label " + m.Key
	}
	return "annotation " + m.Key
}

// Set of marks.
type Set map[Mark]bool

// SetOf is the Set of a list.
func SetOf(marks []Mark) Set {
	set := make(Set, len(marks))
	for _, m := range marks {
		set[m] = true
	}
	return set
}

// RemoveFrom takes the marks out of fields.
func (s Set) RemoveFrom(fields podprobe.Fields) {
	for m := range s {
		of := fields.Annotations
		if m.Label {
			of = fields.Labels
		}
		if of[m.Key] == m.Value {
			delete(of, m.Key)
		}
	}
}

func add(fields podprobe.Fields, marks []Mark) {
	for _, m := range marks {
		if m.Label {
			fields.Labels[m.Key] = m.Value
		} else {
			fields.Annotations[m.Key] = m.Value
		}
	}
}

// Missing are the marks of the fields that the pod does not have, small ones first: what is too much is what is left out.
func Missing(pod *corev1.Pod, fields podprobe.Fields) []Mark {
	var missing []Mark
	collect := func(label bool, wanted, live map[string]string) {
		for key, value := range wanted {
			if there, ok := live[key]; !ok || there != value {
				missing = append(missing, Mark{Label: label, Key: key, Value: value})
			}
		}
	}
	collect(true, fields.Labels, pod.Labels)
	collect(false, fields.Annotations, pod.Annotations)
	slices.SortFunc(missing, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(len(a.Key)+len(a.Value), len(b.Key)+len(b.Value)), cmp.Compare(a.String(), b.String()))
	})
	return missing
}

// Trial tries fields without storing them.
type Trial struct {
	Try func(podprobe.Fields) error
	// Refused reports whether an error of Try is about what was tried.
	Refused func(error) bool
}

// Accepted takes out of the fields what is refused: of marks that were refused together, with cause. It takes as many
// trials as there are refused ones, times the logarithm of all. What is refused and why is returned; err is an error of Try
// that is no refusal, or one of what is not among the marks.
func (t Trial) Accepted(fields podprobe.Fields, together []Mark, cause error) (refused []Mark, why, err error) {
	SetOf(together).RemoveFrom(fields)
	if err := t.Try(fields); err != nil {
		return nil, nil, err
	}
	return t.halves(fields, together, cause)
}

func (t Trial) halves(fields podprobe.Fields, together []Mark, cause error) (refused []Mark, why, err error) {
	if len(together) < 2 {
		return together, cause, nil
	}
	why = cause
	for _, half := range [][]Mark{together[:len(together)/2], together[len(together)/2:]} {
		add(fields, half)
		err := t.Try(fields)
		if err == nil {
			continue
		}
		SetOf(half).RemoveFrom(fields)
		if !t.Refused(err) {
			return nil, nil, err
		}
		of, because, err := t.halves(fields, half, err)
		if err != nil {
			return nil, nil, err
		}
		refused, why = append(refused, of...), because
	}
	return refused, why, nil
}
