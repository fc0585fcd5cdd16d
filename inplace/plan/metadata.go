package plan

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/reported"
)

// metadata collects changed labels and annotations, and for each the containers whose environment refers to it.
func (d *difference) metadata() {
	labels := changedKeys(d.old.Labels, d.updated.Labels)
	annotations := changedKeys(d.old.Annotations, d.updated.Annotations)
	for _, key := range reserved {
		delete(annotations, key)
	}
	used := v1beta1.InPlaceUpdateMetadata{Labels: map[string]string{}, Annotations: map[string]string{}}
	for _, list := range []struct {
		containers []corev1.Container
		init       bool
	}{{d.updated.Spec.InitContainers, true}, {d.updated.Spec.Containers, false}} {
		for i := range list.containers {
			container := &list.containers[i]
			if list.init && !isSidecar(container) {
				continue // it has already run with the old value
			}
			if found := referred(container, labels, annotations); len(found.Labels)+len(found.Annotations) > 0 {
				d.restart(container, list.init, found)
				maps.Copy(used.Labels, found.Labels)
				maps.Copy(used.Annotations, found.Annotations)
			}
		}
	}
	maps.DeleteFunc(labels, func(key string, _ *string) bool { _, ok := used.Labels[key]; return ok })
	maps.DeleteFunc(annotations, func(key string, _ *string) bool { _, ok := used.Annotations[key]; return ok })
	d.changes.Labels, d.changes.Annotations = labels, annotations
}

// restart adds changed metadata to the container's change.
func (d *difference) restart(container *corev1.Container, init bool, found v1beta1.InPlaceUpdateMetadata) {
	i := slices.IndexFunc(d.changes.Containers, func(c Change) bool { return c.Container == container.Name })
	if i < 0 {
		i = len(d.changes.Containers)
		d.changes.Containers = append(d.changes.Containers, Change{Container: container.Name, Sidecar: init})
	}
	d.changes.Containers[i].Metadata = found
	if policy := d.policy(container.Name); d.changes.Containers[i].Image == "" && !survivesStop(policy) {
		d.refuse("metadata", ReasonRestartPolicyNever, fmt.Sprintf("the environment of container %s refers to it, "+
			"and with restartPolicy %s the container may not be started again after it was stopped", container.Name, policy.Policy), recreate)
	}
}

// reserved are the annotations that store the update itself.
var reserved = []string{
	v1beta1.AnnotationInPlaceUpdateState, v1beta1.LegacyAnnotationInPlaceUpdateState,
	v1beta1.AnnotationInPlaceUpdateGrace, v1beta1.LegacyAnnotationInPlaceUpdateGrace, v1beta1.AnnotationRuntimeContainersMeta,
}

// changedKeys returns the new value of each changed key, nil for a removed one.
func changedKeys(old, updated map[string]string) map[string]*string {
	changed := map[string]*string{}
	for key, value := range updated {
		if was, ok := old[key]; !ok || was != value {
			changed[key] = &value
		}
	}
	for key := range old {
		if _, ok := updated[key]; !ok {
			changed[key] = nil
		}
	}
	return changed
}

// referred returns the changed keys that the container's environment refers to. It ignores removed keys: the container
// is not restarted for them, as in OpenKruise.
func referred(container *corev1.Container, labels, annotations map[string]*string) v1beta1.InPlaceUpdateMetadata {
	found := v1beta1.InPlaceUpdateMetadata{Labels: map[string]string{}, Annotations: map[string]string{}}
	for _, env := range reported.MetadataEnvs(container) {
		if env.Annotation && annotations[env.Key] != nil {
			found.Annotations[env.Key] = *annotations[env.Key]
		}
		if !env.Annotation && labels[env.Key] != nil {
			found.Labels[env.Key] = *labels[env.Key]
		}
	}
	return found
}
