package inplace

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
)

// Drop takes out of the record what the step was to write and the API server refuses, so that the rest of the pod's updates is not
// held up by it. The step is nil if the record does not have it.
func Drop(pod *corev1.Pod, refused *Step, now time.Time) (*Step, error) {
	recorded, err := record.Read(pod)
	if err != nil || recorded == nil || refused.stage == nil {
		return nil, err
	}
	v := &view{pod: pod, now: now}
	changes := plan.Changes{Containers: refused.stage.Changes, Labels: refused.stage.Labels, Annotations: refused.stage.Annotations}
	return v.save(recorded.Without(changes), "drop what the API server refuses"), nil
}

// Withdraw takes back what has been recorded of an update and has not been begun. If nothing else is under way, the pod goes back
// into its Services. The step is nil if there is nothing to be taken back.
func Withdraw(pod *corev1.Pod, asked plan.Changes, now time.Time) (*Step, error) {
	if err := foreign.Pod(pod); err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	recorded, err := record.Read(pod)
	if err != nil {
		return nil, err
	}
	known, err := facts.Read(pod)
	if err != nil {
		return nil, err
	}
	if recorded == nil {
		recorded = &record.Record{}
	}
	if recorded.Grace != nil { // OpenKruise's
		return nil, nil
	}
	next := recorded.Without(asked)
	v := &view{pod: pod, record: next, facts: known, now: now}
	left := next.Remaining(pod)
	if gate.Closed(pod) != nil && len(left.Stages(&pod.Spec)) == 0 && v.begun() == nil {
		return v.open(), nil
	}
	if equality.Semantic.DeepEqual(next.State, recorded.State) {
		return nil, nil
	}
	return v.save(next, "take back what has not been begun"), nil
}
