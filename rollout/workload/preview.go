package workload

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace/plan"
)

// Preview is what would happen to the pods of a workload with a template that is not stored yet.
type Preview struct {
	// Refused says why the pods cannot follow the template in place; nil if they can.
	Refused *plan.RefusedError
	// Replacing says why the controller of the workload replaces pods, whatever the change is; empty if it does not.
	Replacing string
	// WithoutSteps says that the template is the one that all pods had before the update, to which they go back without steps.
	WithoutSteps bool
	// Pods are in the order of their updates; the ones that are not updated are last.
	Pods []PodPreview
}

// PodPreview is what would happen to one pod.
type PodPreview struct {
	*corev1.Pod

	// Update is the update in place. It is nil if there is none.
	Update *plan.Update
	// Refused says why this pod cannot follow the template in place; nil if it can, or has it.
	Refused error
	// Excluded says that the partition of the owner excludes the pod.
	Excluded bool
}

// NewPreview returns what would happen to the pods of a workload that has the new template already, as in the answer to a dry run.
// The policy does not have to exist.
func NewPreview(policy *v1alpha1.InPlaceUpdatePolicy, w *Workload, pods []*corev1.Pod, now time.Time) Preview {
	v := &view{policy: policy, workload: w, now: now, dryRun: true, decision: Decision{Status: *policy.Status.DeepCopy()}}
	fields, err := NewFields(w.Template, w.former(pods), policy.Status.Update)
	refused := (*plan.RefusedError)(nil)
	if !errors.As(err, &refused) {
		v.fields = fields
	}
	v.observe(Observation{Workload: w, Pods: pods})
	preview := Preview{Refused: refused, WithoutSteps: v.goesBack()}
	if w.mixed() {
		preview.Replacing = ownRollout
	}
	order := v.outdated()
	for _, p := range v.pods {
		if !slices.Contains(order, p) {
			order = append(order, p)
		}
	}
	for _, p := range order {
		preview.Pods = append(preview.Pods, v.preview(p, refused))
	}
	return preview
}

func (v *view) preview(p *pod, refused *plan.RefusedError) PodPreview {
	one := PodPreview{Pod: p.Pod, Excluded: p.excluded}
	switch {
	case p.excluded:
	case refused != nil: // also a pod with the label of the stored revision
		one.Refused = refused
	default:
		update, err := v.fields.Update(p.Pod, plan.Options{})
		if err == nil {
			one.Update = &update
		} else if !unchanged(err) {
			one.Refused = err
		}
	}
	return one
}
