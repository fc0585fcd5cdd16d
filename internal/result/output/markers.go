package output

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refit-project/refit/internal/result"
)

// Markers writes the labels, annotations and fields of the policy for the entry's state, and removes labels and annotations
// of the other policies: one that no policy wants now is removed if a policy would give it its value. Other values, which
// others have set, stay.
type Markers struct {
	Object   Object
	Policies []Policy
}

// Policy is what is written in one state.
type Policy struct {
	// State is compared with the entry's value and, if the entry has not succeeded, with its state, ignoring case. A
	// failure without a policy of its own uses the policy for unknown.
	State               string
	Labels, Annotations map[string]string
	// Fields are values by JSON Pointer. They stay when the state no longer matches, because a custom resource may require
	// a member.
	Fields map[string]any
	// Subresource of Fields: "status" or empty.
	Subresource string
}

// Validate implements Output.
func (m Markers) Validate() error {
	errs := []error{m.Object.Validate()}
	seen := map[string]bool{}
	for _, p := range m.Policies {
		if p.State == "" || seen[p.State] {
			errs = append(errs, fmt.Errorf("marker policy for state %q: empty or given twice", p.State))
		}
		seen[p.State] = true
		for key, value := range p.Labels {
			errs = append(errs, checkKey("label", key))
			if result.LabelValue(value) != value {
				errs = append(errs, fmt.Errorf("label %s: %q is not a label value", key, value))
			}
		}
		for key := range p.Annotations {
			errs = append(errs, checkKey("annotation", key))
		}
		for pointer := range p.Fields {
			_, err := ParsePointer(pointer)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// match returns the policy for an entry.
func (m Markers) match(e result.Entry) (Policy, bool) {
	words := []string{e.Value}
	switch e.State {
	case result.Succeeded:
		words = append(words, string(result.Succeeded))
	case result.Failed:
		words = append(words, string(result.Failed), string(result.Unknown))
	default:
		words = append(words, string(result.Unknown))
	}
	for i, word := range words {
		for _, p := range m.Policies {
			if p.State == word || i > 0 && strings.EqualFold(p.State, word) {
				return p, true
			}
		}
	}
	return Policy{}, false
}

func (m Markers) edits(e result.Entry) []Edit {
	matched, _ := m.match(e)
	var edits []Edit
	add := func(path func(string) []string, of func(Policy) map[string]string) {
		ours := map[string][]any{}
		for _, p := range m.Policies {
			for key, value := range of(p) {
				ours[key] = append(ours[key], value)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(ours)) {
			edit := Edit{Object: m.Object, Path: path(key), Ours: ours[key]}
			if value, ok := of(matched)[key]; ok {
				edit.Want = value
			}
			edits = append(edits, edit)
		}
	}
	add(labelPath, func(p Policy) map[string]string { return p.Labels })
	add(annotationPath, func(p Policy) map[string]string { return p.Annotations })
	for _, pointer := range slices.Sorted(maps.Keys(matched.Fields)) {
		if path, err := ParsePointer(pointer); err == nil {
			edits = append(edits, Edit{Object: m.Object, Path: path, Subresource: matched.Subresource, Want: matched.Fields[pointer]})
		}
	}
	return edits
}
