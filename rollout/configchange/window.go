package configchange

import (
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/schedule"
)

// Limits of a window's length. A window that is longer than a week is always open with most schedules.
const (
	minWindow = time.Minute
	maxWindow = 7 * 24 * time.Hour
)

// Limits of a schedule and a time zone, as in a RestartSchedule, in bytes.
const (
	maxSchedule = 256
	maxZone     = 64
)

// maxText is the number of bytes of an annotation in a message.
const maxText = 63

// Window is when restarts may begin. A nil Window is always open.
type Window struct {
	begins   schedule.Times
	duration time.Duration
}

// readWindow parses the annotations of a window; nil if there is none. The error is a *rollout.InvalidError.
func readWindow(annotations map[string]string) (*Window, error) {
	begin, ok := annotations[v1alpha1.AnnotationRestartWindow]
	length, hasLength := annotations[v1alpha1.AnnotationRestartWindowDuration]
	zone, hasZone := annotations[v1alpha1.AnnotationRestartWindowTimeZone]
	switch {
	case !ok && (hasLength || hasZone):
		return nil, invalid(v1alpha1.AnnotationRestartWindow, "is required with the other annotations of a window: a schedule as of a CronJob, when the window begins")
	case !ok:
		return nil, nil
	case !hasLength:
		return nil, invalid(v1alpha1.AnnotationRestartWindowDuration, "is required with "+v1alpha1.AnnotationRestartWindow+": how long the window is, as 4h")
	}
	duration, err := foreign.Duration(length)
	if err != nil || duration < minWindow || duration > maxWindow {
		return nil, invalid(v1alpha1.AnnotationRestartWindowDuration, fmt.Sprintf("must be a duration from 1m to 168h, as 4h: got %q", foreign.Shorten(length, maxText)))
	}
	if len(begin) > maxSchedule || len(zone) > maxZone {
		return nil, invalid(v1alpha1.AnnotationRestartWindow, fmt.Sprintf("must be at most %d bytes, and the time zone at most %d", maxSchedule, maxZone))
	}
	times, err := schedule.Read(&v1alpha1.RestartScheduleSpec{Schedule: begin, TimeZone: zone})
	if err == nil && times.Never() {
		err = &rollout.InvalidError{Field: schedule.FieldSchedule, Message: "no date matches it"}
	}
	if wrong := (*rollout.InvalidError)(nil); errors.As(err, &wrong) {
		annotation := v1alpha1.AnnotationRestartWindow
		if wrong.Field == schedule.FieldTimeZone {
			annotation = v1alpha1.AnnotationRestartWindowTimeZone
		}
		return nil, invalid(annotation, requester.Printable(wrong.Message))
	}
	return &Window{begins: times, duration: duration}, nil
}

// opens returns when restarts may begin: now, or the begin of the next window.
func (w *Window) opens(now time.Time) time.Time {
	if w == nil || !w.begins.Last(now.Add(-w.duration), now).IsZero() {
		return now
	}
	return w.begins.After(now)
}
