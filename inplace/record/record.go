package record

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/kubelet"
)

// Record is the progress of an update of a pod.
type Record struct {
	State v1beta1.InPlaceUpdateState
	// Grace is what OpenKruise applies after the pod has drained, or nil.
	Grace *v1beta1.InPlaceUpdateSpec
	// SidecarSet is set if the update changes containers that a SidecarSet has injected, see [ReadSidecars].
	SidecarSet string
}

// Extension returns Refit's part of the record. Records written by OpenKruise have none.
func (r *Record) Extension() v1beta1.InPlaceUpdateExtension {
	if r.State.Refit == nil {
		return v1beta1.InPlaceUpdateExtension{}
	}
	return *r.State.Refit
}

// Written returns the record after the stage has been written to the pod, with what its containers ran before; for
// resources, after they have taken effect. What remains to be written then waits until the containers of the stage are
// ready.
func (r *Record) Written(pod *corev1.Pod, stage *plan.Stage, now time.Time) *Record {
	next := &Record{State: r.State, SidecarSet: r.SidecarSet}
	state, ours := &next.State, r.Extension()
	state.Refit = &ours
	switch stage.Kind {
	case plan.StageResize:
		state.NextContainerResources = nil
		return next
	case plan.StageMetadata:
		ours.Labels, ours.Annotations = nil, nil
		return next
	}
	state.NextContainerImages, state.NextContainerRefMetadata = maps.Clone(state.NextContainerImages), maps.Clone(state.NextContainerRefMetadata)
	state.LastContainerStatuses, ours.Instances = maps.Clone(state.LastContainerStatuses), maps.Clone(ours.Instances)
	if ours.Instances == nil {
		ours.Instances = map[string]v1beta1.InPlaceUpdateInstance{}
	}
	for _, change := range stage.Changes {
		delete(state.NextContainerImages, change.Container)
		delete(state.NextContainerRefMetadata, change.Container)
		next.note(pod, &change, &ours)
	}
	state.ContainerBatchesRecord = append(slices.Clone(state.ContainerBatchesRecord),
		v1beta1.InPlaceUpdateContainerBatch{Timestamp: metav1.NewTime(now), Containers: stage.Containers()})
	ours.Written = &metav1.MicroTime{Time: now}
	held := maps.Clone(r.After())
	maps.DeleteFunc(held, func(_ string, after []string) bool { return allReady(pod, after) })
	next.await(held, stage.Containers())
	return next
}

func allReady(pod *corev1.Pod, containers []string) bool {
	return !slices.ContainsFunc(containers, func(name string) bool {
		status := kubelet.StatusOf(pod, name)
		return status == nil || !status.Ready
	})
}

// After returns, by container whose change remains to be written, the containers that have to be ready before that. A
// record written by OpenKruise has them for all containers together.
func (r *Record) After() map[string][]string {
	if after := r.Extension().After; after != nil || r.State.PreCheckBeforeNext == nil {
		return after
	}
	after := map[string][]string{}
	for _, name := range r.restarts() {
		after[name] = r.State.PreCheckBeforeNext.ContainersRequiredReady
	}
	return after
}

// await makes what remains to be written wait: as before, or else for these containers.
func (r *Record) await(before map[string][]string, containers []string) {
	ours := r.State.Refit
	ours.After, r.State.PreCheckBeforeNext = nil, nil
	var all []string
	for _, name := range r.restarts() {
		after := containers
		if earlier, ok := before[name]; ok {
			after = earlier
		}
		if len(after) > 0 {
			ours.After = put(ours.After, name, after)
			all = append(all, after...)
		}
	}
	if len(all) > 0 {
		slices.Sort(all)
		r.State.PreCheckBeforeNext = &v1beta1.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: slices.Compact(all)}
	}
}

// restarts returns the containers whose image or environment remains to be written, sorted.
func (r *Record) restarts() []string {
	names := append(slices.Collect(maps.Keys(r.State.NextContainerImages)), slices.Collect(maps.Keys(r.State.NextContainerRefMetadata))...)
	slices.Sort(names)
	return slices.Compact(names)
}

// Opened returns the record after the pod has been made ready again, or nil if there is no update.
func (r *Record) Opened(now time.Time) *Record {
	if r.State.UpdateTimestamp.IsZero() {
		return nil
	}
	next, ours := &Record{State: r.State}, r.Extension()
	ours.Opened = &metav1.Time{Time: now}
	next.State.Refit = &ours
	return next
}

// maxSuperseded limits the images in a record that belong to superseded updates.
const maxSuperseded = 4

// note records what the container runs before the change. An instance that an earlier, unfinished update was to replace
// still has the image from before that update.
func (r *Record) note(pod *corev1.Pod, change *plan.Change, ours *v1beta1.InPlaceUpdateExtension) {
	status, container := kubelet.StatusOf(pod, change.Container), plan.Find(&pod.Spec, change.Container)
	if status == nil || container == nil {
		return
	}
	instance := v1beta1.InPlaceUpdateInstance{ContainerID: status.ContainerID, Image: container.Image}
	was, recorded := ours.Instances[change.Container]
	if recorded && was.ContainerID == status.ContainerID {
		instance.Image, instance.Superseded = was.Image, was.Superseded
	}
	if recorded && container.Image != was.Image {
		superseded := append(slices.Clone(instance.Superseded), container.Image)
		instance.Superseded = superseded[max(0, len(superseded)-maxSuperseded):]
	}
	ours.Instances[change.Container] = instance
	if change.Image != "" {
		if r.State.LastContainerStatuses == nil {
			r.State.LastContainerStatuses = map[string]v1beta1.InPlaceUpdateContainerStatus{}
		}
		r.State.LastContainerStatuses[change.Container] = v1beta1.InPlaceUpdateContainerStatus{ImageID: status.ImageID}
	}
}
