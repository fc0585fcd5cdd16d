package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the image of refit-manager has no time zone database

	"github.com/robfig/cron/v3"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout"
)

// Fields in the errors of Read.
const (
	FieldSchedule = "spec.schedule"
	FieldTimeZone = "spec.timeZone"
)

// Times computes the scheduled times of a schedule.
type Times struct {
	cron cron.Schedule
	zone *time.Location
}

// Read parses spec.schedule and spec.timeZone. The error is a *rollout.InvalidError.
func Read(spec *v1alpha1.RestartScheduleSpec) (Times, error) {
	if strings.Contains(spec.Schedule, "TZ=") {
		return Times{}, invalid(FieldSchedule, errors.New("must have no time zone; use spec.timeZone"))
	}
	parsed, err := cron.ParseStandard(spec.Schedule)
	if err != nil {
		return Times{}, invalid(FieldSchedule, err)
	}
	if _, interval := parsed.(cron.ConstantDelaySchedule); interval {
		return Times{}, invalid(FieldSchedule, errors.New("must be times of day and not an interval: @every is counted from a start that is not known"))
	}
	zone := time.UTC
	if spec.TimeZone != "" {
		if strings.EqualFold(spec.TimeZone, "Local") {
			return Times{}, invalid(FieldTimeZone, errors.New("must be the name of a time zone, as Europe/Paris"))
		}
		if zone, err = time.LoadLocation(spec.TimeZone); err != nil {
			return Times{}, invalid(FieldTimeZone, err)
		}
	}
	return Times{cron: parsed, zone: zone}, nil
}

// After returns the first scheduled time after t, or zero if there is none within five years.
func (s Times) After(t time.Time) time.Time {
	return s.cron.Next(t.In(s.zone)).UTC()
}

// Never reports whether no date matches the schedule. The result does not depend on the present time: the search begins in a leap year.
func (s Times) Never() bool {
	return s.After(time.Date(2000, time.January, 1, 0, 0, 0, 0, s.zone)).IsZero()
}

// Last returns the last scheduled time after begin and not after now, or zero if there is none.
func (s Times) Last(begin, now time.Time) time.Time {
	const day = 24 * time.Hour
	// Search from recent to earlier times, so that a per-minute schedule does not iterate over years.
	for _, window := range []time.Duration{time.Hour, day, 31 * day, 366 * day, 5 * 366 * day} {
		from := now.Add(-window)
		if from.Before(begin) {
			from = begin
		}
		var last time.Time
		for at := s.After(from); !at.IsZero() && !at.After(now); at = s.After(at) {
			last = at
		}
		if !last.IsZero() || from.Equal(begin) {
			return last
		}
	}
	return time.Time{}
}

func invalid(field string, err error) error {
	return &rollout.InvalidError{Field: field, Message: fmt.Sprint(err)}
}
