package foreign

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Bounds of a selector. It is compared with every pod of a namespace whenever one of them changes.
const (
	MaxRequirements   = 100   // labels and expressions
	MaxSelectorValues = 1_000 // of all expressions together
)

// Selector reads a selector in an object of others. A nil selector selects nothing, an empty one everything.
func Selector(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector != nil {
		if requirements := len(selector.MatchLabels) + len(selector.MatchExpressions); requirements > MaxRequirements {
			return nil, unreadable("a selector has at most %d labels and expressions, this one has %d", MaxRequirements, requirements)
		}
		values := 0
		for i := range selector.MatchExpressions {
			values += len(selector.MatchExpressions[i].Values)
		}
		if values > MaxSelectorValues {
			return nil, unreadable("the expressions of a selector have at most %d values, these have %d", MaxSelectorValues, values)
		}
	}
	read, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, unreadable("%v", err)
	}
	return read, nil
}
