package inplace

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/kubelet"
)

// Start is the first step of an update. What an earlier update of the pod has left unfinished is waited for. What it has not begun
// is dropped, unless it is part of this update, see [record.Wanted]; its drain and its order hold until it has ended.
// The pod's annotations and quantities have to be readable.
//
// Mostly the step writes the record, with as much of the update as can be written at once. Every write to the pod's
// metadata has kubelet sync the pod, and each sync waits up to a second for kubelet's next look at the containers: a record
// that is written before the image would make the pod unavailable for that second. So the step may be a StepDrain, before
// there is a record: then Start is called again, with the pod that Apply returns.
func Start(pod *corev1.Pod, update *plan.Update, now time.Time) (*Step, error) {
	if err := foreign.Pod(pod); err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	before, err := record.Read(pod)
	if err != nil {
		return nil, err
	}
	known, err := facts.Read(pod)
	if err != nil {
		return nil, err
	}
	if before == nil {
		before = &record.Record{}
	}
	v := &view{pod: pod, record: before, facts: known, now: now}
	next, unfinished := v.unfinished(), v.begun() != nil
	next.Begin(update, now)
	next.Keep(before, unfinished)
	v.record = next
	stage, _ := v.writable()
	if unfinished || stage == nil || stage.Kind == plan.StageResize || next.State.Refit.DrainSeconds > 0 {
		return v.save(next, "begin the update"), nil
	}
	d := v.stage(stage)
	if d.Step == nil {
		return nil, fmt.Errorf("%w: %s", ErrNotDrained, d.Message)
	}
	return d.Step, nil
}

// ErrNotDrained means that the pod has a readiness gate that cannot be closed.
var ErrNotDrained = errors.New("the update cannot begin")

// Trials are the writes that the update will make to the pod's spec and metadata, to be sent as server-side dry runs: what
// the API server refuses of them it would refuse then, when containers may have been stopped already.
func Trials(pod *corev1.Pod, update *plan.Update) []*Step {
	v := &view{pod: pod, record: &record.Record{}}
	var trials []*Step
	for i := range update.Stages {
		stage := &update.Stages[i]
		if stage.Kind == plan.StageResize {
			trials = append(trials, v.resize(stage))
		} else {
			trials = append(trials, v.write(stage))
		}
	}
	return trials
}

// unfinished keeps of a record what has been begun and has not taken effect.
func (v *view) unfinished() *record.Record {
	kept := &record.Record{SidecarSet: v.record.SidecarSet, State: v1beta1.InPlaceUpdateState{UpdateResources: v.record.State.UpdateResources}}
	ours := &v1beta1.InPlaceUpdateExtension{Instances: map[string]v1beta1.InPlaceUpdateInstance{}}
	kept.State.Refit = ours
	batch := v1beta1.InPlaceUpdateContainerBatch{Timestamp: v.record.State.UpdateTimestamp}
	for _, name := range v.changed() {
		if v.container(plan.Find(&v.pod.Spec, name)) == nil {
			continue
		}
		batch.Containers = append(batch.Containers, name)
		if status, ok := v.record.State.LastContainerStatuses[name]; ok {
			if kept.State.LastContainerStatuses == nil {
				kept.State.LastContainerStatuses = map[string]v1beta1.InPlaceUpdateContainerStatus{}
			}
			kept.State.LastContainerStatuses[name], kept.State.UpdateImages = status, true
		}
		if instance, ok := v.record.Extension().Instances[name]; ok {
			ours.Instances[name] = instance
		}
		kept.State.UpdateEnvFromMetadata = kept.State.UpdateEnvFromMetadata || v.record.State.UpdateEnvFromMetadata
	}
	if len(batch.Containers) > 0 {
		kept.State.ContainerBatchesRecord = []v1beta1.InPlaceUpdateContainerBatch{batch}
	}
	return kept
}

// Ended refuses changes of containers that have ended and that kubelet does not start again.
func Ended(pod *corev1.Pod, update *plan.Update) []plan.Refusal {
	var refusals []plan.Refusal
	for _, change := range update.Changes.Containers {
		status := kubelet.StatusOf(pod, change.Container)
		if policy := kubelet.RestartPolicyOf(pod, change.Container); policy.Final(status) {
			refusals = append(refusals, plan.Refusal{
				Container: change.Container, Field: "container " + change.Container, Reason: plan.ReasonContainerEnded, Instead: "recreate the pod",
				Why: fmt.Sprintf("it has ended with code %d, and with restartPolicy %s kubelet does not start it again", status.State.Terminated.ExitCode, policy.Policy),
			})
		}
	}
	return refusals
}

// Settled reports whether these containers run with what the pod's spec and metadata give them, and are ready; resources, whether
// kubelet has also applied the pod's.
func Settled(pod *corev1.Pod, recorded *record.Record, known facts.Facts, now time.Time, containers []string, resources bool) bool {
	if foreign.Pod(pod) != nil {
		return false
	}
	v := &view{pod: pod, record: recorded, facts: known, now: now}
	if recorded == nil {
		v.record = &record.Record{}
	}
	if resources && v.record.State.UpdateResources && (v.resizePending() || v.resized() != nil) {
		return false
	}
	return !slices.ContainsFunc(containers, func(name string) bool {
		container := plan.Find(&pod.Spec, name)
		return container == nil || v.container(container) != nil || v.ready(name) != nil
	})
}
