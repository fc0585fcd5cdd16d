package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
)

// Start is the first step of an update. What an earlier update of the pod has left unfinished is waited for, and what it has
// not begun is dropped. The pod's annotations have to be readable.
//
// Mostly the step writes the record, with as much of the update as can be written at once. Every write to the pod's
// metadata has kubelet sync the pod, and each sync waits up to a second for kubelet's next look at the containers: a record
// that is written before the image would make the pod unavailable for that second. So the step may be a StepDrain, before
// there is a record: then Start is called again, with the pod that Apply returns.
func Start(pod *corev1.Pod, update *plan.Update, now time.Time) (*Step, error) {
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
	if before.Grace != nil { // the pod goes on draining for as long as was promised
		next.State.Refit.DrainSeconds = max(next.State.Refit.DrainSeconds, before.Grace.GraceSeconds)
	}
	v.record = next
	if unfinished || len(update.Stages) == 0 || update.Stages[0].Kind == plan.StageResize || next.State.Refit.DrainSeconds > 0 {
		return v.save(next, "begin the update"), nil
	}
	return v.stage(&update.Stages[0], len(update.Stages) > 1).Step, nil
}

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
			trials = append(trials, v.write(stage, false))
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
