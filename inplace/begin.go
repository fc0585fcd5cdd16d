package inplace

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
)

// Start returns the first step of an update. If an earlier update of the pod is in progress, the changes that it has
// begun are completed first. Its other changes are dropped, unless they are part of this update, see [record.Wanted].
// Its drain and its order apply until it has ended. The pod's annotations and quantities must be readable.
//
// Usually the step writes the record, together with as much of the update as can be written at once. Every write to the
// pod's metadata makes kubelet sync the pod, and each sync waits up to a second until kubelet has listed the containers
// again. If the record were written before the image, the pod would be unavailable for that second. So the step may be
// a StepDrain, before there is a record. In that case the caller must call Start again with the pod that Apply returns.
func Start(pod *corev1.Pod, update *plan.Update, now time.Time) (*Step, error) {
	if err := foreign.Pod(pod); err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	before, err := record.Read(pod)
	if err != nil {
		return nil, err
	}
	known, err := reported.Read(pod)
	if err != nil {
		return nil, err
	}
	if before == nil {
		before = &record.Record{}
	}
	v := &view{pod: pod, record: before, reported: known, now: now}
	next, unfinished := v.unfinished(), v.awaitBegun() != nil
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

// Trials returns the writes that the update will make to the pod's spec and metadata, to send as server-side dry runs.
// If the API server refuses one of them, it would also refuse it later, when containers may already have been stopped.
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

// unfinished returns a record with the parts of the present record that have begun and not taken effect yet.
func (v *view) unfinished() *record.Record {
	kept := &record.Record{SidecarSet: v.record.SidecarSet}
	kept.State.UpdateResources = v.record.State.UpdateResources && v.awaitResize() != nil
	ours := &v1beta1.InPlaceUpdateExtension{Instances: map[string]v1beta1.InPlaceUpdateInstance{}}
	kept.State.Refit = ours
	batch := v1beta1.InPlaceUpdateContainerBatch{Timestamp: v.record.State.UpdateTimestamp}
	for _, name := range v.changed() {
		if v.awaitContainer(plan.Find(&v.pod.Spec, name)) == nil {
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

// Ended returns refusals for changes of containers that have ended and that kubelet does not start again.
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

// Settled reports whether these containers run with the pod's present spec and metadata, and are ready. With resources
// it also requires that kubelet has applied the pod's resources.
func Settled(pod *corev1.Pod, recorded *record.Record, known reported.Containers, now time.Time, containers []string, resources bool) bool {
	if foreign.Pod(pod) != nil {
		return false
	}
	v := &view{pod: pod, record: recorded, reported: known, now: now}
	if recorded == nil {
		v.record = &record.Record{}
	}
	if resources && v.record.State.UpdateResources && (v.resizePending() || v.awaitResize() != nil) {
		return false
	}
	return !slices.ContainsFunc(containers, func(name string) bool {
		container := plan.Find(&pod.Spec, name)
		return container == nil || v.awaitContainer(container) != nil || v.awaitReady(name) != nil
	})
}
