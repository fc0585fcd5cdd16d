package inplace

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
)

// ReadSidecars reads the record of the last update of a SidecarSet's containers. It is nil if there has been none. Each
// SidecarSet has a record of its own in OpenKruise's annotation kruise.io/sidecarset-inplace-update-state, beside that of
// the pod's own update, so that both can go on at the same time.
func ReadSidecars(pod *corev1.Pod, sidecarSet string) (*Record, error) {
	entries, err := sidecarRecords(pod)
	if err != nil {
		return nil, err
	}
	text, ok := entries[sidecarSet]
	if !ok {
		return nil, nil
	}
	record := &Record{SidecarSet: sidecarSet}
	if err := json.Unmarshal(text, &record.State); err != nil {
		return nil, fmt.Errorf("%w %s of pod %s: %s: %w", ErrMalformed, v1beta1.AnnotationSidecarSetInPlaceUpdateState, pod.Name, sidecarSet, err)
	}
	return record, nil
}

func sidecarRecords(pod *corev1.Pod) (map[string]json.RawMessage, error) {
	entries := map[string]json.RawMessage{}
	_, err := readAnnotation(pod, &entries, v1beta1.AnnotationSidecarSetInPlaceUpdateState)
	return entries, err
}

// BeginSidecars begins an update of a SidecarSet's containers, whose record is before; nil if there is none. The readiness
// gate of the pod is left alone. An update of images alone begins with the write that sets them; others begin with a record,
// see [Start].
func BeginSidecars(pod *corev1.Pod, sidecarSet string, before *Record, update *plan.Update, known facts.Facts, now time.Time) *Step {
	if before == nil {
		before = &Record{SidecarSet: sidecarSet}
	}
	v := &view{pod: pod, record: before, facts: known, now: now}
	next := v.unfinished()
	next.begin(update, now)
	if len(update.Stages) == 1 && update.Stages[0].Kind == plan.StageImage {
		return (&view{pod: pod, record: next, facts: known, now: now}).write(&update.Stages[0], false)
	}
	return v.save(next, "begin the update")
}

// Pending reports whether something of the update is still to be written to the pod.
func (r *Record) Pending() bool {
	s := &r.State
	return len(s.NextContainerImages)+len(s.NextContainerResources)+len(s.NextContainerRefMetadata) > 0
}

// encodeSidecars is the annotation with this record in it. Entries that cannot be read are replaced by it alone.
func (r *Record) encodeSidecars(pod *corev1.Pod) string {
	entries, err := sidecarRecords(pod)
	if err != nil || entries == nil {
		entries = map[string]json.RawMessage{}
	}
	entries[r.SidecarSet] = json.RawMessage(r.encode())
	text, err := json.Marshal(entries)
	if err != nil {
		panic(err) // each entry has been decoded or encoded before
	}
	return string(text)
}

// MetadataStep writes labels and annotations to the pod.
func MetadataStep(pod *corev1.Pod, message string, labels, annotations map[string]string) *Step {
	return (&view{pod: pod}).patch().step(StepWrite, "", message).With(labels, annotations)
}

// With returns the step with labels and annotations that are written at the same time. It may not be one that writes a
// subresource, for which the API server would drop them.
func (s *Step) With(labels, annotations map[string]string) *Step {
	var p patch
	if err := json.Unmarshal(s.Patch, &p); err != nil {
		panic(err) // steps are made by this package
	}
	for _, list := range []struct {
		into    *map[string]*string
		changes map[string]string
	}{{&p.Metadata.Labels, labels}, {&p.Metadata.Annotations, annotations}} {
		for key, value := range list.changes {
			*list.into = put(*list.into, key, &value)
		}
	}
	with := p.step(s.Kind, s.Subresource, s.Message)
	with.Restart = s.Restart
	return with
}
