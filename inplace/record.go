package inplace

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
)

// ErrMalformed is wrapped by every error about an annotation that cannot be read. Removing the annotation ends the update
// where it is.
var ErrMalformed = errors.New("malformed annotation")

// Record is how far the update of a pod has come.
type Record struct {
	State v1beta1.InPlaceUpdateState
	// Grace is what OpenKruise is to apply when the pod has drained, nil if nothing.
	Grace *v1beta1.InPlaceUpdateSpec
	// SidecarSet is set if the update is that of sidecars, see [BeginSidecars].
	SidecarSet string
}

// ReadRecord reads it from the pod's annotations. It is nil for a pod that has never been updated in place.
func ReadRecord(pod *corev1.Pod) (*Record, error) {
	record := &Record{}
	found, err := readAnnotation(pod, &record.State, v1beta1.AnnotationInPlaceUpdateState, v1beta1.LegacyAnnotationInPlaceUpdateState)
	if err != nil || !found {
		return nil, err
	}
	grace := &v1beta1.InPlaceUpdateSpec{}
	found, err = readAnnotation(pod, grace, v1beta1.AnnotationInPlaceUpdateGrace, v1beta1.LegacyAnnotationInPlaceUpdateGrace)
	if found {
		record.Grace = grace
	}
	return record, err
}

func readAnnotation(pod *corev1.Pod, into any, keys ...string) (bool, error) {
	for _, key := range keys {
		text, ok := pod.Annotations[key]
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(text), into); err != nil {
			return false, fmt.Errorf("%w %s of pod %s: %w", ErrMalformed, key, pod.Name, err)
		}
		return true, nil
	}
	return false, nil
}

// extension is Refit's part of the record, which one that OpenKruise has written does not have.
func (r *Record) extension() v1beta1.InPlaceUpdateExtension {
	if r.State.Refit == nil {
		return v1beta1.InPlaceUpdateExtension{}
	}
	return *r.State.Refit
}

// pending is what the record says is still to be written. Resources that the spec already has
// are not: the resize is under way or over.
func (r *Record) pending(pod *corev1.Pod) plan.Changes {
	ours := r.extension()
	left := plan.Changes{Labels: ours.Labels, Annotations: ours.Annotations, Order: ours.Order}
	for _, list := range []struct {
		containers []corev1.Container
		init       bool
	}{{pod.Spec.InitContainers, true}, {pod.Spec.Containers, false}} {
		for i := range list.containers {
			container := &list.containers[i]
			change := plan.Change{
				Container: container.Name, Sidecar: list.init,
				Image: r.State.NextContainerImages[container.Name], Metadata: r.State.NextContainerRefMetadata[container.Name],
			}
			if resources, ok := r.State.NextContainerResources[container.Name]; ok && !hasResources(container, resources) {
				change.Resources = &resources
			}
			if change.Image != "" || change.Resources != nil || change.ChangesMetadata() {
				left.Containers = append(left.Containers, change)
			}
		}
	}
	return left
}

// Wanted is what the pod is to be like at the end of the update that the record tells of; a nil record means that there is
// none.
func Wanted(pod *corev1.Pod, record *Record) *corev1.PodTemplateSpec {
	wanted := plan.Template(pod)
	if record == nil {
		return wanted
	}
	left := record.adopted().pending(pod)
	wanted.Labels, wanted.Annotations = merge(wanted.Labels, left.Labels), merge(wanted.Annotations, left.Annotations)
	for _, change := range left.Containers {
		container := plan.Find(&wanted.Spec, change.Container)
		if change.Image != "" {
			container.Image = change.Image
		}
		if change.Resources != nil {
			container.Resources.Requests = merged(container.Resources.Requests, change.Resources.Requests)
			container.Resources.Limits = merged(container.Resources.Limits, change.Resources.Limits)
		}
		wanted.Labels = merged(wanted.Labels, change.Metadata.Labels)
		wanted.Annotations = merged(wanted.Annotations, change.Metadata.Annotations)
	}
	return wanted
}

func merge(into map[string]string, changes map[string]*string) map[string]string {
	for key, value := range changes {
		if value == nil {
			delete(into, key)
		} else {
			into = put(into, key, *value)
		}
	}
	return into
}

func merged[M ~map[K]V, K comparable, V any](into, changes M) M {
	if into == nil {
		into = M{}
	}
	maps.Copy(into, changes)
	return into
}

// hasResources reports whether the container has all these resources; the API server may have added requests.
func hasResources(container *corev1.Container, want corev1.ResourceRequirements) bool {
	has := func(list, want corev1.ResourceList) bool {
		for name, quantity := range want {
			if got, ok := list[name]; !ok || got.Cmp(quantity) != 0 {
				return false
			}
		}
		return true
	}
	return has(container.Resources.Requests, want.Requests) && has(container.Resources.Limits, want.Limits)
}

// without is the record once the stage has been written to the pod, with what its containers ran before; for resources,
// once they have taken effect. More says that further stages follow.
func (r *Record) without(pod *corev1.Pod, stage *plan.Stage, more bool, now time.Time) *Record {
	next := &Record{State: r.State, SidecarSet: r.SidecarSet}
	state, ours := &next.State, r.extension()
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
	state.PreCheckBeforeNext = nil
	if more {
		state.PreCheckBeforeNext = &v1beta1.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: stage.Containers()}
	}
	return next
}

// opened is the record once the pod has been put back into its Services, nil if there is no update.
func (r *Record) opened(now time.Time) *Record {
	if r.State.UpdateTimestamp.IsZero() {
		return nil
	}
	next, ours := &Record{State: r.State}, r.extension()
	ours.Opened = &metav1.Time{Time: now}
	next.State.Refit = &ours
	return next
}

// note keeps what the container runs before the change. An instance that an earlier, unfinished update was to replace
// still is one of the image from before that.
func (r *Record) note(pod *corev1.Pod, change *plan.Change, ours *v1beta1.InPlaceUpdateExtension) {
	status, container := statusOf(pod, change.Container), plan.Find(&pod.Spec, change.Container)
	if status == nil || container == nil {
		return
	}
	instance := v1beta1.InPlaceUpdateInstance{ContainerID: status.ContainerID, Image: container.Image}
	if was, ok := ours.Instances[change.Container]; ok && was.ContainerID == status.ContainerID {
		instance.Image = was.Image
	}
	ours.Instances[change.Container] = instance
	if change.Image != "" {
		if r.State.LastContainerStatuses == nil {
			r.State.LastContainerStatuses = map[string]v1beta1.InPlaceUpdateContainerStatus{}
		}
		r.State.LastContainerStatuses[change.Container] = v1beta1.InPlaceUpdateContainerStatus{ImageID: status.ImageID}
	}
}

func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == name {
				return &statuses[i]
			}
		}
	}
	return nil
}

func (r *Record) encode() string {
	text, err := json.Marshal(&r.State)
	if err != nil {
		panic(err) // types of the API can always be encoded
	}
	return string(text)
}
