package workload

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
)

// Withdraw returns the step that ends an earlier update of these fields in a pod that has the current template: it removes the
// changes that are recorded and not written yet, and makes the pod ready again. It returns nil if there is nothing to remove.
// A nil record means that the pod was only drained.
func (f *Fields) Withdraw(pod *corev1.Pod, recorded *record.Record, now time.Time) (*inplace.Step, error) {
	left := plan.Changes{}
	if recorded != nil {
		left = recorded.Remaining(pod)
	}
	asked := plan.Changes{Labels: maps.Clone(left.Labels), Annotations: maps.Clone(left.Annotations)}
	maps.DeleteFunc(asked.Labels, func(key string, _ *string) bool { return !slices.Contains(f.update.Labels, key) })
	maps.DeleteFunc(asked.Annotations, func(key string, _ *string) bool { return !slices.Contains(f.update.Annotations, key) })
	for _, c := range left.Containers {
		for _, own := range f.update.Containers {
			if own.Name == c.Container {
				asked.Containers = append(asked.Containers, c)
			}
		}
	}
	return inplace.Withdraw(pod, asked, now) //nolint:wrapcheck // it names the pod
}
