package podprobes

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/podprobe"
	"github.com/refit-project/refit/result"
)

// eventRefused is the reason of the Event about labels and annotations that the API server does not take.
const eventRefused = "ProbeResultRefused"

// refusedPause is how long a label or annotation that was refused is left out, unless its value changes.
const refusedPause = 5 * time.Minute

// mark is a label or an annotation of a pod.
type mark struct {
	label      bool
	key, value string
}

func (m mark) String() string {
	if m.label {
		return "label " + m.key
	}
	return "annotation " + m.key
}

// refusal is what the API server has not taken for a pod.
type refusal struct {
	uid   types.UID
	marks map[mark]bool
	at    time.Time
}

// refused reports whether an error is about what was sent: an object beyond its limits, or a policy.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// removeRefused takes out of desired what the API server has refused lately.
func (d *podDestination) removeRefused(pod *corev1.Pod, desired podprobe.Fields) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.refusals[client.ObjectKeyFromObject(pod)]
	if ok && r.uid == pod.UID && d.now().Sub(r.at) < refusedPause {
		removeMarks(desired, r.marks)
	}
}

// applyAccepted applies what the API server takes of the fields, after it has refused them together with cause: one label
// or annotation must not hold back the others. What it does not take is reported, and removed from desired.
func (d *podDestination) applyAccepted(ctx context.Context, pod *corev1.Pod, fields, desired podprobe.Fields, cause error) (version string, err error) {
	w := winnowing{podDestination: d, pod: pod, accepted: fields, cause: cause}
	missing := missingMarks(pod, fields)
	removeMarks(w.accepted, setOf(missing))
	if err := w.try(ctx, nil); err != nil {
		return "", err // it does not depend on what the pod is to get
	}
	if err := w.halves(ctx, missing); err != nil {
		return "", err
	}
	d.recordRefused(pod, setOf(w.refused), w.cause)
	removeMarks(desired, setOf(w.refused))
	return d.apply(ctx, pod, w.accepted)
}

// winnowing finds the marks that a pod can get, with dry runs: as many as there are refused ones, times the logarithm of
// all.
type winnowing struct {
	*podDestination
	pod      *corev1.Pod
	accepted podprobe.Fields
	refused  []mark
	cause    error
}

// halves tries both halves of marks that were refused together.
func (w *winnowing) halves(ctx context.Context, marks []mark) error {
	if len(marks) < 2 {
		w.refused = append(w.refused, marks...)
		return nil
	}
	for _, half := range [][]mark{marks[:len(marks)/2], marks[len(marks)/2:]} {
		err := w.try(ctx, half)
		if refused(err) {
			w.cause = err
			err = w.halves(ctx, half)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// try adds marks to those that are accepted, if they are.
func (w *winnowing) try(ctx context.Context, marks []mark) error {
	addMarks(w.accepted, marks)
	_, err := w.apply(ctx, w.pod, w.accepted, client.DryRunAll)
	if err != nil {
		removeMarks(w.accepted, setOf(marks))
	}
	return err
}

// missingMarks are those that the pod does not have, small ones first: what is too much is what is left out.
func missingMarks(pod *corev1.Pod, fields podprobe.Fields) []mark {
	var missing []mark
	add := func(label bool, wanted, live map[string]string) {
		for key, value := range wanted {
			if there, ok := live[key]; !ok || there != value {
				missing = append(missing, mark{label: label, key: key, value: value})
			}
		}
	}
	add(true, fields.Labels, pod.Labels)
	add(false, fields.Annotations, pod.Annotations)
	slices.SortFunc(missing, func(a, b mark) int {
		return cmp.Or(cmp.Compare(len(a.key)+len(a.value), len(b.key)+len(b.value)), cmp.Compare(a.String(), b.String()))
	})
	return missing
}

func addMarks(fields podprobe.Fields, marks []mark) {
	for _, m := range marks {
		if m.label {
			fields.Labels[m.key] = m.value
		} else {
			fields.Annotations[m.key] = m.value
		}
	}
}

func removeMarks(fields podprobe.Fields, marks map[mark]bool) {
	for m := range marks {
		of := fields.Annotations
		if m.label {
			of = fields.Labels
		}
		if of[m.key] == m.value {
			delete(of, m.key)
		}
	}
}

func setOf(marks []mark) map[mark]bool {
	set := make(map[mark]bool, len(marks))
	for _, m := range marks {
		set[m] = true
	}
	return set
}

// recordRefused reports marks that were refused, once, and remembers them.
func (d *podDestination) recordRefused(pod *corev1.Pod, marks map[mark]bool, cause error) {
	key := client.ObjectKeyFromObject(pod)
	d.mu.Lock()
	before := d.refusals[key]
	d.refusals[key] = refusal{uid: pod.UID, marks: marks, at: d.now()}
	d.mu.Unlock()
	if len(marks) == 0 || before.uid == pod.UID && maps.Equal(before.marks, marks) {
		return
	}
	var names []string
	for m := range marks {
		names = append(names, m.String())
	}
	slices.Sort(names)
	text := result.Cut(strings.Join(names, ", "), maxNames)
	d.log.Warn("the API server refuses results of probes", "pod", key.String(), "refused", text, "err", cause)
	d.recorder.Eventf(pod, nil, corev1.EventTypeWarning, eventRefused, "Probe",
		"Left out, as the API server refuses it: %s: %s", text, result.Cut(cause.Error(), maxNames-64))
}
