package record

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/must"
)

// ErrMalformed is wrapped by every error about an unreadable annotation. Removing the annotation ends the update in its
// present state.
var ErrMalformed = errors.New("malformed annotation")

// Annotation returns the key of the annotation from which Read reads the record, or "" if the pod has none.
func Annotation(pod *corev1.Pod) string {
	for _, key := range []string{v1beta1.AnnotationInPlaceUpdateState, v1beta1.LegacyAnnotationInPlaceUpdateState} {
		if _, ok := pod.Annotations[key]; ok {
			return key
		}
	}
	return ""
}

// Read reads the record from the pod's annotations. It returns nil for a pod that has never been updated in place.
func Read(pod *corev1.Pod) (*Record, error) {
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
		if err := foreign.JSON(text, into); err != nil {
			return false, fmt.Errorf("%w %s of pod %s: %w", ErrMalformed, key, pod.Name, err)
		}
		return true, nil
	}
	return false, nil
}

// ReadSidecars reads the record of the last update of a SidecarSet's containers. It returns nil if there has been none.
// Each SidecarSet has its own record in OpenKruise's annotation kruise.io/sidecarset-inplace-update-state, separate
// from the record of the pod's own update, so that both can proceed at the same time.
func ReadSidecars(pod *corev1.Pod, sidecarSet string) (*Record, error) {
	entries, err := sidecarRecords(pod)
	if err != nil {
		return nil, err
	}
	text, ok := entries[sidecarSet]
	if !ok {
		return nil, nil
	}
	return readEntry(pod, sidecarSet, text)
}

func readEntry(pod *corev1.Pod, sidecarSet string, text json.RawMessage) (*Record, error) {
	record := &Record{SidecarSet: sidecarSet}
	if err := foreign.JSON(text, &record.State); err != nil {
		return nil, fmt.Errorf("%w %s of pod %s: %s: %w", ErrMalformed, v1beta1.AnnotationSidecarSetInPlaceUpdateState, pod.Name, sidecarSet, err)
	}
	return record, nil
}

// maxSidecarSets limits the SidecarSet records of a pod, because all of them are evaluated with the pod.
const maxSidecarSets = 256

func sidecarRecords(pod *corev1.Pod) (map[string]json.RawMessage, error) {
	entries := map[string]json.RawMessage{}
	_, err := readAnnotation(pod, &entries, v1beta1.AnnotationSidecarSetInPlaceUpdateState)
	if err == nil && len(entries) > maxSidecarSets {
		err = fmt.Errorf("%w %s of pod %s: %w: it has %d entries, at most %d are",
			ErrMalformed, v1beta1.AnnotationSidecarSetInPlaceUpdateState, pod.Name, foreign.ErrUnreadable, len(entries), maxSidecarSets)
	}
	return entries, err
}

// Annotations returns the changes of the pod's annotations that store the record; nil removes an annotation that the
// record replaces.
func (r *Record) Annotations(pod *corev1.Pod) map[string]*string {
	if r.SidecarSet != "" {
		text := r.encodeSidecars(pod)
		return map[string]*string{v1beta1.AnnotationSidecarSetInPlaceUpdateState: &text}
	}
	text := string(r.encode())
	changes := map[string]*string{v1beta1.AnnotationInPlaceUpdateState: &text}
	for _, key := range []string{
		v1beta1.LegacyAnnotationInPlaceUpdateState, v1beta1.AnnotationInPlaceUpdateGrace, v1beta1.LegacyAnnotationInPlaceUpdateGrace,
	} {
		if _, ok := pod.Annotations[key]; ok {
			changes[key] = nil
		}
	}
	return changes
}

// encodeSidecars returns the annotation with this record in it. If the present value is unreadable, it only contains
// this record.
func (r *Record) encodeSidecars(pod *corev1.Pod) string {
	entries, err := sidecarRecords(pod)
	if err != nil || entries == nil {
		entries = map[string]json.RawMessage{}
	}
	entries[r.SidecarSet] = r.encode()
	return string(must.JSON(entries))
}

func (r *Record) encode() []byte { return must.JSON(&r.State) }
