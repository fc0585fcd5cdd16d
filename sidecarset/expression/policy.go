package expression

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
)

// Policy is a compiled resourcesPolicy.
type Policy struct {
	// Target selects the containers whose resources are used.
	Target *regexp.Regexp

	mode             v1beta1.TargetContainersMode
	limits, requests pair
}

// pair holds two expressions; a missing one is nil.
type pair struct{ cpu, memory *Expression }

// NewPolicy compiles the patterns and expressions. The error names the field.
func NewPolicy(source *v1beta1.ResourcesPolicy) (*Policy, error) {
	target, err := regexp.Compile(source.TargetContainersNameRegex)
	if err != nil {
		return nil, fmt.Errorf("targetContainersNameRegex: %w", err)
	}
	p := &Policy{mode: source.TargetContainersMode, Target: target}
	if p.limits, err = parseList(source.ResourcesExpr.Limits); err != nil {
		return nil, fmt.Errorf("resourcesExpr.limits.%w", err)
	}
	if p.requests, err = parseList(source.ResourcesExpr.Requests); err != nil {
		return nil, fmt.Errorf("resourcesExpr.requests.%w", err)
	}
	return p, nil
}

func parseList(list *v1beta1.ResourceExprList) (parsed pair, err error) {
	if list == nil {
		return parsed, nil
	}
	if list.CPU != "" {
		if parsed.cpu, err = Parse(list.CPU, CPU); err != nil {
			return parsed, fmt.Errorf("cpu: %w", err)
		}
	}
	if list.Memory != "" {
		if parsed.memory, err = Parse(list.Memory, Memory); err != nil {
			return parsed, fmt.Errorf("memory: %w", err)
		}
	}
	return parsed, nil
}

// Evaluate computes resources from the resources of the target containers. If their quantities are too large or too
// small to compute with, the error wraps foreign.ErrUnreadable.
func (p *Policy) Evaluate(targets []corev1.ResourceRequirements) (corev1.ResourceRequirements, error) {
	var result corev1.ResourceRequirements
	for _, target := range targets {
		if err := foreign.CheckResources(target); err != nil {
			return result, err
		}
	}
	for _, kind := range []struct {
		name string
		of   pair
		from func(corev1.ResourceRequirements) corev1.ResourceList
		into *corev1.ResourceList
	}{
		{"limits", p.limits, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }, &result.Limits},
		{"requests", p.requests, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }, &result.Requests},
	} {
		for _, one := range []struct {
			name corev1.ResourceName
			e    *Expression
		}{{corev1.ResourceCPU, kind.of.cpu}, {corev1.ResourceMemory, kind.of.memory}} {
			if one.e == nil {
				continue
			}
			amount, all := aggregate(targets, p.mode, kind.from, one.name)
			if kind.name == "limits" && one.e.UsesVariable() && !all {
				continue // a part of unlimited is unlimited
			}
			value, err := one.e.Evaluate(amount)
			if err != nil {
				return result, fmt.Errorf("%s.%s cannot be computed from %s: %w", kind.name, one.name, amount.String(), err)
			}
			if *kind.into == nil {
				*kind.into = corev1.ResourceList{}
			}
			(*kind.into)[one.name] = value
		}
	}
	return result, nil
}

// aggregate returns the sum or maximum, and whether every target has the resource. A missing resource counts as 0.
func aggregate(targets []corev1.ResourceRequirements, mode v1beta1.TargetContainersMode, list func(corev1.ResourceRequirements) corev1.ResourceList, name corev1.ResourceName) (resource.Quantity, bool) {
	var total resource.Quantity
	all := true
	for _, target := range targets {
		amount, ok := list(target)[name]
		all = all && ok
		switch {
		case mode == v1beta1.TargetContainersSum:
			total.Add(amount)
		case amount.Cmp(total) > 0:
			total = amount.DeepCopy()
		}
	}
	return total, all
}
