package inplace

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
)

// BeginSidecars returns the first step of an update of a SidecarSet's containers. before is its present record, or nil
// if there is none. The readiness gates of the pod are not used. An update that only changes images begins with the
// write that sets them; others begin with a record, see [Start].
func BeginSidecars(pod *corev1.Pod, sidecarSet string, before *record.Record, update *plan.Update, known reported.Containers, now time.Time) *Step {
	if before == nil {
		before = &record.Record{SidecarSet: sidecarSet}
	}
	v := &view{pod: pod, record: before, reported: known, now: now}
	next := v.unfinished()
	next.Begin(update, now)
	next.Keep(before, false)
	if len(update.Stages) == 1 && update.Stages[0].Kind == plan.StageImage {
		return (&view{pod: pod, record: next, reported: known, now: now}).write(&update.Stages[0])
	}
	return v.save(next, "begin the update")
}

// MetadataStep returns a step that writes labels and annotations to the pod.
func MetadataStep(pod *corev1.Pod, message string, labels, annotations map[string]string) *Step {
	return (&view{pod: pod}).patch().step(StepWrite, "", message).With(labels, annotations)
}

// With returns the step with labels and annotations that are written at the same time. The step must not write a
// subresource, because the API server would ignore them.
func (s *Step) With(labels, annotations map[string]string) *Step {
	with, p := *s, *s.patch
	p.Metadata.Labels, p.Metadata.Annotations = merged(p.Metadata.Labels, labels), merged(p.Metadata.Annotations, annotations)
	with.patch = &p
	return &with
}

func merged(values map[string]*string, changes map[string]string) map[string]*string {
	all := maps.Clone(values)
	for key, value := range changes {
		all[key] = &value
	}
	return all
}
