package control

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/probe/control/marks"
	"github.com/refit-project/refit/probe/podprobe"
)

// eventRefused is the reason of the Event about labels and annotations that the API server refuses.
const eventRefused = "ProbeResultRefused"

// refusedPause is how long a refused label or annotation is left out, unless its value changes.
const refusedPause = 5 * time.Minute

// refusal is what the API server has refused for a pod.
type refusal struct {
	uid   types.UID
	marks map[marks.Mark]time.Time // when each mark was last refused
	all   bool                     // writes without marks are refused too, because of a condition or whatever is written
}

// paused returns the marks that must not be tried again yet.
func (r refusal) paused(now time.Time) marks.Set {
	set := marks.Set{}
	for m, at := range r.marks {
		if now.Sub(at) < refusedPause {
			set[m] = true
		}
	}
	return set
}

// refused reports whether an error was caused by the content of the write: an object that is too large, or a policy.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// removeRefused removes marks from desired that the API server has refused recently.
func (d *podDestination) removeRefused(pod *corev1.Pod, desired podprobe.Fields) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.refusals[client.ObjectKeyFromObject(pod)]; r.uid == pod.UID {
		r.paused(d.now()).RemoveFrom(desired)
	}
}

// applyAccepted applies the fields that the API server accepts, after it has refused all of them with the error cause.
// One label or annotation must not hold back the others. Refused fields are reported and removed from desired.
func (d *podDestination) applyAccepted(ctx context.Context, pod *corev1.Pod, fields, desired podprobe.Fields, cause error) (version string, err error) {
	trial := marks.Trial{Refused: refused, Try: func(some podprobe.Fields) error {
		_, err := d.apply(ctx, pod, some, client.DryRunAll)
		return err
	}}
	left, why, err := trial.Accepted(fields, marks.Missing(pod, fields), cause)
	if err != nil {
		if refused(err) {
			d.recordAllRefused(pod, err)
		}
		return "", err
	}
	set := marks.SetOf(left)
	d.recordRefused(pod, set, why)
	set.RemoveFrom(desired)
	return d.apply(ctx, pod, fields)
}

// recordRefused sends an Event about refused marks, once, and records them.
func (d *podDestination) recordRefused(pod *corev1.Pod, left marks.Set, why error) {
	before := d.remember(pod, left, false)
	var names []string
	known := true
	for m := range left {
		names = append(names, m.String())
		known = known && !before.marks[m].IsZero()
	}
	if known {
		return
	}
	slices.Sort(names)
	d.report(pod, foreign.Cut(strings.Join(names, ", "), maxNames), why)
}

// recordAllRefused sends an Event, once, if no result can be written because writes without labels and annotations are
// refused too.
func (d *podDestination) recordAllRefused(pod *corev1.Pod, why error) {
	if before := d.remember(pod, nil, true); !before.all {
		d.report(pod, "all results, with and without labels and annotations", why)
	}
}

func (d *podDestination) report(pod *corev1.Pod, what string, why error) {
	d.log.Warn("the API server refuses results of probes", "pod", pod.Namespace+"/"+pod.Name, "refused", what, "err", why)
	d.recorder.Eventf(pod, nil, corev1.EventTypeWarning, eventRefused, "Probe",
		"Left out, as the API server refuses it: %s: %s", what, foreign.Cut(why.Error(), maxNames-64))
}

// remember records refused marks of the pod, keeps recently refused marks that were not tried again, and returns the
// previous record.
func (d *podDestination) remember(pod *corev1.Pod, left marks.Set, all bool) (before refusal) {
	key, now := client.ObjectKeyFromObject(pod), d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.refusals[key]; known.uid == pod.UID {
		before = known
	}
	after := refusal{uid: pod.UID, marks: map[marks.Mark]time.Time{}, all: all}
	for m := range before.paused(now) {
		after.marks[m] = before.marks[m]
	}
	for m := range left {
		after.marks[m] = now
	}
	d.refusals[key] = after
	return before
}
