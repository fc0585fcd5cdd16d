// Package match decides which pods a SidecarSet selects, and whether two SidecarSets can select the same pod.
package match

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
)

// Selector is the part of a SidecarSet that selects pods.
type Selector struct {
	pods       labels.Selector
	namespace  string          // empty means all
	namespaces labels.Selector // nil means all
}

// NewSelector compiles the selectors of a spec. Without a pod selector it selects nothing.
func NewSelector(spec *v1beta1.SidecarSetSpec) (Selector, error) {
	s := Selector{pods: labels.Nothing(), namespace: spec.Namespace}
	var err error
	if spec.Selector != nil && !empty(spec.Selector) {
		if s.pods, err = foreign.Selector(spec.Selector); err != nil {
			return Selector{}, fmt.Errorf("spec.selector: %w", err)
		}
	}
	if spec.NamespaceSelector != nil {
		if s.namespaces, err = foreign.Selector(spec.NamespaceSelector); err != nil {
			return Selector{}, fmt.Errorf("spec.namespaceSelector: %w", err)
		}
	}
	return s, nil
}

// Pod reports whether the pod selector matches these labels. The namespace is checked separately.
func (s *Selector) Pod(podLabels map[string]string) bool {
	return s.pods.Matches(labels.Set(podLabels))
}

// Labels returns the pod selector alone, to list pods.
func (s *Selector) Labels() labels.Selector { return s.pods }

// Namespace reports whether pods of the namespace are selected.
func (s *Selector) Namespace(name string, namespaceLabels map[string]string) bool {
	if s.namespace != "" && s.namespace != name {
		return false
	}
	return s.namespaces == nil || s.namespaces.Matches(labels.Set(namespaceLabels))
}

// NeedsNamespace reports whether Namespace depends on labels.
func (s *Selector) NeedsNamespace() bool { return s.namespaces != nil }

func empty(selector *metav1.LabelSelector) bool {
	return len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0
}

// Overlap reports whether a pod can exist that both select. Invalid selectors count as overlapping.
func Overlap(a, b *v1beta1.SidecarSetSpec) bool {
	if a.Selector == nil || b.Selector == nil || empty(a.Selector) || empty(b.Selector) {
		return false
	}
	if !satisfiable(a.Selector, b.Selector) {
		return false
	}
	// Every namespace has its name as a label.
	named := []*metav1.LabelSelector{{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpExists},
	}}}
	for _, spec := range []*v1beta1.SidecarSetSpec{a, b} {
		if spec.Namespace != "" {
			named = append(named, &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: spec.Namespace}})
		}
		if spec.NamespaceSelector != nil {
			named = append(named, spec.NamespaceSelector)
		}
	}
	return satisfiable(named...)
}

// demand is what selectors require of one label.
type demand struct {
	in            map[string]bool // nil means any value
	notIn         map[string]bool
	exist, absent bool
}

// satisfiable reports whether one set of labels can match all selectors. Labels are independent of each other, so it
// checks each one separately.
func satisfiable(selectors ...*metav1.LabelSelector) bool {
	demands := map[string]*demand{}
	of := func(key string) *demand {
		if demands[key] == nil {
			demands[key] = &demand{notIn: map[string]bool{}}
		}
		return demands[key]
	}
	for _, selector := range selectors {
		for key, value := range selector.MatchLabels {
			of(key).oneOf([]string{value})
		}
		for _, r := range selector.MatchExpressions {
			d := of(r.Key)
			switch r.Operator {
			case metav1.LabelSelectorOpIn:
				d.oneOf(r.Values)
			case metav1.LabelSelectorOpNotIn:
				for _, value := range r.Values {
					d.notIn[value] = true
				}
			case metav1.LabelSelectorOpExists:
				d.exist = true
			case metav1.LabelSelectorOpDoesNotExist:
				d.absent = true
			}
		}
	}
	for _, d := range demands {
		if !d.satisfiable() {
			return false
		}
	}
	return true
}

func (d *demand) oneOf(values []string) {
	allowed := map[string]bool{}
	for _, value := range values {
		if d.in == nil || d.in[value] {
			allowed[value] = true
		}
	}
	d.in = allowed
}

// satisfiable reports whether a label can meet the demand. NotIn is met by a missing label, and excludes only finitely
// many values.
func (d *demand) satisfiable() bool {
	if d.absent {
		return !d.exist && d.in == nil
	}
	if d.in == nil {
		return true
	}
	for value := range d.in {
		if !d.notIn[value] {
			return true
		}
	}
	return false
}
