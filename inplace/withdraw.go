package inplace

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/foreign"
)

// Drop returns a step that removes what the API server has refused from the record, so that it does not delay the other
// updates of the pod. It returns nil if the record does not contain it.
func Drop(pod *corev1.Pod, refused *Step, now time.Time) (*Step, error) {
	recorded, err := record.Read(pod)
	if err != nil || recorded == nil || refused.stage == nil {
		return nil, err
	}
	v := &view{pod: pod, now: now}
	changes := plan.Changes{Containers: refused.stage.Changes, Labels: refused.stage.Labels, Annotations: refused.stage.Annotations}
	return v.save(recorded.Without(changes), "drop what the API server refuses"), nil
}

// Withdraw returns a step that removes the changes that are recorded and have not begun. If no other update
// is in progress, it makes the pod ready again. It returns nil if there is nothing to remove.
func Withdraw(pod *corev1.Pod, asked plan.Changes, now time.Time) (*Step, error) {
	if err := foreign.Pod(pod); err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	recorded, err := record.Read(pod)
	if err != nil {
		return nil, err
	}
	known, err := reported.Read(pod)
	if err != nil {
		return nil, err
	}
	if recorded == nil {
		recorded = &record.Record{}
	}
	if recorded.Grace != nil { // an update of OpenKruise
		return nil, nil
	}
	next := recorded.Without(asked)
	v := &view{pod: pod, record: next, reported: known, now: now}
	left := next.Remaining(pod)
	var changed *record.Record // nil if there is nothing to remove
	if !equality.Semantic.DeepEqual(next.State, recorded.Without(plan.Changes{}).State) {
		changed = next
	}
	switch {
	case gate.Closed(pod) != nil && len(left.Stages(&pod.Spec)) == 0 && v.awaitBegun() == nil:
		return v.open(changed), nil
	case changed == nil:
		return nil, nil
	default:
		return v.save(changed, "take back what has not been begun"), nil
	}
}
