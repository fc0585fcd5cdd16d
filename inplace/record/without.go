package record

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
)

// Without returns the record without these changes, as far as they remain to be written with these values.
func (r *Record) Without(changes plan.Changes) *Record {
	next, ours := &Record{State: r.State, Grace: r.Grace, SidecarSet: r.SidecarSet}, r.Extension()
	state := &next.State
	state.Refit = &ours
	state.NextContainerImages = maps.Clone(state.NextContainerImages)
	state.NextContainerResources = maps.Clone(state.NextContainerResources)
	labels, annotations := maps.Clone(changes.Labels), maps.Clone(changes.Annotations)
	for _, change := range changes.Containers {
		if change.Image != "" && state.NextContainerImages[change.Container] == change.Image {
			delete(state.NextContainerImages, change.Container)
		}
		if pending, ok := state.NextContainerResources[change.Container]; ok && change.Resources != nil {
			pending.Requests = withoutQuantities(pending.Requests, change.Resources.Requests)
			pending.Limits = withoutQuantities(pending.Limits, change.Resources.Limits)
			state.NextContainerResources[change.Container] = pending
			if len(pending.Requests)+len(pending.Limits) == 0 {
				delete(state.NextContainerResources, change.Container)
			}
		}
		for key, value := range change.Metadata.Labels {
			labels = put(labels, key, &value)
		}
		for key, value := range change.Metadata.Annotations {
			annotations = put(annotations, key, &value)
		}
	}
	ours.Labels, ours.Annotations = withoutKeys(ours.Labels, labels), withoutKeys(ours.Annotations, annotations)
	state.NextContainerRefMetadata = nil
	for name, of := range r.State.NextContainerRefMetadata {
		of = v1beta1.InPlaceUpdateMetadata{Labels: withoutValues(of.Labels, labels), Annotations: withoutValues(of.Annotations, annotations)}
		if len(of.Labels)+len(of.Annotations) > 0 {
			state.NextContainerRefMetadata = put(state.NextContainerRefMetadata, name, of)
		}
	}
	next.await(r.After(), nil)
	return next
}

func withoutQuantities(list, some corev1.ResourceList) corev1.ResourceList {
	list = maps.Clone(list)
	maps.DeleteFunc(list, func(name corev1.ResourceName, is resource.Quantity) bool {
		asked, ok := some[name]
		return ok && asked.Cmp(is) == 0
	})
	return list
}

func withoutKeys(list, some map[string]*string) map[string]*string {
	list = maps.Clone(list)
	maps.DeleteFunc(list, func(key string, is *string) bool {
		asked, ok := some[key]
		return ok && (asked == nil) == (is == nil) && (is == nil || *asked == *is)
	})
	return list
}

func withoutValues(list map[string]string, some map[string]*string) map[string]string {
	list = maps.Clone(list)
	maps.DeleteFunc(list, func(key, is string) bool { return some[key] != nil && *some[key] == is })
	return list
}
