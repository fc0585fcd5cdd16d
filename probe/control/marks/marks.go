// Package marks finds out which labels and annotations the API server accepts for a pod. It has no client: the caller
// provides the function that tries them.
package marks

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/probe/podprobe"
)

// Mark is a label or an annotation of a pod.
type Mark struct {
	Label      bool
	Key, Value string
}

// String returns the kind and the key, without the value.
func (m Mark) String() string {
	if m.Label {
		return "label " + m.Key
	}
	return "annotation " + m.Key
}

// Set is a set of marks.
type Set map[Mark]bool

// SetOf returns a Set with the marks of a list.
func SetOf(marks []Mark) Set {
	set := make(Set, len(marks))
	for _, m := range marks {
		set[m] = true
	}
	return set
}

// RemoveFrom removes the marks from fields.
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

// Missing returns the marks of the fields that the pod does not have, small ones first, so that the largest are left
// out if they do not fit.
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

// Trial tries to write fields without storing them.
type Trial struct {
	Try func(podprobe.Fields) error
	// Refused reports whether an error of Try was caused by the fields that were tried.
	Refused func(error) bool
}

// Accepted removes refused marks from fields. together are marks that were refused together, with the error cause. It
// needs as many trials as there are refused marks, times the logarithm of the number of marks. It returns the refused
// marks and why. err is an error of Try that is no refusal, or a refusal that is not caused by the marks.
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
