package console

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// ParseSelector parses a label selector in the form of kubectl's --selector. A LabelSelector has no operator for !=,
// which means the same as notin with one value.
func ParseSelector(text string) (*metav1.LabelSelector, error) {
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, err
	}
	parsed := &metav1.LabelSelector{}
	for _, requirement := range requirements {
		expression := metav1.LabelSelectorRequirement{Key: requirement.Key(), Values: requirement.ValuesUnsorted()}
		switch operator := requirement.Operator(); operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
			expression.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			expression.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			expression.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			expression.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			return nil, fmt.Errorf("operator %q cannot be used here", operator)
		}
		slices.Sort(expression.Values)
		parsed.MatchExpressions = append(parsed.MatchExpressions, expression)
	}
	return parsed, nil
}
