package inject

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/revision"
)

// record writes the annotations that record what has been injected. It removes the records of other SidecarSets, which
// a pod that was created from the manifest of another one may have.
func (in *injection) record() error {
	if err := in.recordSkipped(); err != nil || len(in.plan.Sets) == 0 {
		return err
	}
	written := &metav1.ObjectMeta{Annotations: map[string]string{}}
	add := func(version *annotation.Version, at metav1.Time) {
		for key, value := range annotation.Write(written, version, at) {
			written.Annotations[key] = value
		}
	}
	for _, name := range in.plan.Keep {
		if carried := annotation.Of(in.pod, name); carried != nil {
			add(&annotation.Version{
				SidecarSet: name, Revision: carried.ControllerRevision, Sidecars: carried.SidecarList,
				Hashes: revision.Hashes{Full: carried.Hash, WithoutImage: carried.WithoutImage},
			}, carried.UpdateTimestamp)
		}
	}
	for _, set := range in.plan.Sets {
		version, at := set.version, in.now
		version.Sidecars = slices.DeleteFunc(slices.Clone(version.Sidecars), func(name string) bool { return in.kept[set.name+"/"+name] })
		if carried := annotation.Of(in.pod, set.name); carried != nil && carried.Hash == version.Hashes.Full &&
			carried.ControllerRevision == version.Revision && slices.Equal(carried.SidecarList, version.Sidecars) {
			at = carried.UpdateTimestamp // the webhook has been called again
		}
		add(&version, at)
	}
	for key, value := range written.Annotations {
		in.setAnnotation(key, value)
	}
	return nil
}

func (in *injection) recordSkipped() error {
	if len(in.plan.Skipped) == 0 {
		if _, ok := in.annotations[v1beta1.AnnotationSidecarSetSkipped]; ok {
			delete(in.annotations, v1beta1.AnnotationSidecarSetSkipped)
			in.changed[pathAnnotations] = true
		}
		return nil
	}
	in.setAnnotation(v1beta1.AnnotationSidecarSetSkipped, string(must.JSON(in.plan.Skipped)))
	return nil
}

// recordChecked records in a pod that was sent with records which SidecarSets have been processed.
func (in *injection) recordChecked() error {
	var injected []string
	for _, set := range in.plan.Sets {
		injected = append(injected, set.name)
	}
	key, value, removed := in.claims.Record(injected, slices.Collect(maps.Keys(in.plan.Skipped)))
	for _, sent := range removed {
		if _, ok := in.annotations[sent]; ok {
			delete(in.annotations, sent)
			in.changed[pathAnnotations] = true
		}
	}
	if key != "" {
		in.setAnnotation(key, value)
	}
	return nil
}
