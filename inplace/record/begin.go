package record

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/foreign"
)

// Begin adds all changes of an update as remaining to be written.
func (r *Record) Begin(update *plan.Update, now time.Time) {
	state := &r.State
	state.Revision, state.UpdateTimestamp = update.Options.Revision, metav1.NewTime(now)
	state.Refit.Order, state.Refit.DrainSeconds = update.Options.Order, update.Options.DrainSeconds
	state.Refit.Labels, state.Refit.Annotations, state.Refit.Unready = update.Changes.Labels, update.Changes.Annotations, update.Options.Unready
	for _, change := range update.Changes.Containers {
		r.add(change)
	}
}

// Keep copies the guarantees of the previous update, which apply while it is in progress: how long the pod drains, the
// order of its containers, and which of them wait for others. unfinished says that part of it has begun and not ended.
func (r *Record) Keep(before *Record, unfinished bool) {
	ours, was := r.State.Refit, before.Extension()
	if before.Grace != nil {
		was.DrainSeconds = max(was.DrainSeconds, before.Grace.GraceSeconds)
	}
	if !unfinished && !before.Pending() && before.Grace == nil {
		return
	}
	ours.DrainSeconds = max(ours.DrainSeconds, was.DrainSeconds)
	ours.Order = appended(was.Order, ours.Order)
	after := maps.Clone(before.After())
	maps.DeleteFunc(after, func(name string, _ []string) bool {
		return r.State.NextContainerImages[name] != before.State.NextContainerImages[name] ||
			!equality.Semantic.DeepEqual(r.State.NextContainerRefMetadata[name], before.State.NextContainerRefMetadata[name])
	})
	r.await(after, nil)
}

// appended returns the groups of order, followed by the groups of containers that only other has.
func appended(order, other [][]string) [][]string {
	if len(order) == 0 {
		return other
	}
	all := slices.Clone(order)
	for _, group := range other {
		group = slices.DeleteFunc(slices.Clone(group), func(name string) bool {
			return slices.ContainsFunc(order, func(named []string) bool { return slices.Contains(named, name) })
		})
		if len(group) > 0 {
			all = append(all, group)
		}
	}
	return all
}

func (r *Record) add(change plan.Change) {
	state := &r.State
	if change.Image != "" {
		state.UpdateImages = true
		state.NextContainerImages = put(state.NextContainerImages, change.Container, change.Image)
	}
	if change.Resources != nil {
		state.UpdateResources = true
		state.NextContainerResources = put(state.NextContainerResources, change.Container, *change.Resources)
	}
	if change.ChangesMetadata() {
		state.UpdateEnvFromMetadata = true
		state.NextContainerRefMetadata = put(state.NextContainerRefMetadata, change.Container, change.Metadata)
	}
}

// adopted returns the record with the changes that OpenKruise applies after the drain added to what remains to be written.
func (r *Record) adopted() *Record {
	if r.Grace == nil {
		return r
	}
	next, err := r.Adopt()
	if err != nil { // Next reports it
		return r
	}
	return next
}

// Adopt converts an update that OpenKruise applies after the drain to a record in which no change has begun.
func (r *Record) Adopt() (*Record, error) {
	var metadata struct {
		Metadata struct {
			Labels      map[string]*string `json:"labels"`
			Annotations map[string]*string `json:"annotations"`
		} `json:"metadata"`
	}
	if len(r.Grace.MetaDataPatch) > 0 {
		if err := foreign.JSON(r.Grace.MetaDataPatch, &metadata); err != nil {
			return nil, fmt.Errorf("%w %s: metaDataPatch: %w", ErrMalformed, v1beta1.AnnotationInPlaceUpdateGrace, err)
		}
	}
	next := &Record{State: r.State}
	next.State.Refit = &v1beta1.InPlaceUpdateExtension{Labels: metadata.Metadata.Labels, Annotations: metadata.Metadata.Annotations}
	for name, image := range r.Grace.ContainerImages {
		next.add(plan.Change{Container: name, Image: image})
	}
	for name, resources := range r.Grace.ContainerResources {
		next.add(plan.Change{Container: name, Resources: &resources})
	}
	for name, changed := range r.Grace.ContainerRefMetadata {
		next.add(plan.Change{Container: name, Metadata: changed})
	}
	return next, nil
}

func put[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}
