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
	cron *cron.SpecSchedule
	zone *time.Location
}

// Read parses spec.schedule and spec.timeZone. The error is a *rollout.InvalidError.
func Read(spec *v1alpha1.RestartScheduleSpec) (Times, error) {
	if strings.Contains(spec.Schedule, "TZ=") {
		return Times{}, invalid(FieldSchedule, errors.New("must have no time zone; use spec.timeZone"))
	}
	parsed, err := cron.ParseStandard(spec.Schedule)
	if err != nil {
		return Times{}, invalid(FieldSchedule, fmt.Errorf("must have five fields, minute hour day month weekday, such as \"0 3 * * 1\", or be a name, such as \"@daily\": %s", withoutGo(err)))
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Times{}, invalid(FieldSchedule, errors.New("must be times of day and not an interval: @every is counted from a start that is not known"))
	}
	zone := time.UTC
	if spec.TimeZone != "" {
		if strings.EqualFold(spec.TimeZone, "Local") {
			return Times{}, invalid(FieldTimeZone, errors.New("must be the name of a time zone, as Europe/Paris"))
		}
		if zone, err = time.LoadLocation(spec.TimeZone); err != nil {
			return Times{}, invalid(FieldTimeZone, fmt.Errorf("must be the name of a time zone of the IANA database, as Europe/Paris, and not %q", spec.TimeZone))
		}
	}
	return Times{cron: fields, zone: zone}, nil
}

// After returns the first scheduled time after t, or zero if there is none within five years. A schedule for every hour
// is due in each hour that passes. Others follow the clocks of the zone: a time that they skip when they are set forward
// is due at that moment, and a time that they show twice is due the first time.
func (s Times) After(t time.Time) time.Time {
	const everyHour = 1<<24 - 1 // the bits of SpecSchedule.Hour
	if s.cron.Hour&everyHour == everyHour {
		return s.cron.Next(t.In(s.zone)).UTC()
	}
	// In the zone, cron does not find a time that the clocks skip, and finds a time that they show twice both times. So it
	// gets what the clocks show as a time of UTC, which has no summer time.
	for clock := s.cron.Next(s.clock(t)); !clock.IsZero(); clock = s.cron.Next(clock) {
		if at := s.when(clock); at.After(t) {
			return at.UTC()
		}
	}
	return time.Time{}
}

// clock returns what the clocks of the zone show at t, as a time of UTC.
func (s Times) clock(t time.Time) time.Time {
	_, offset := t.In(s.zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// when returns when the clocks of the zone first show this time or a later one. time.Date does not: which of two times it
// returns depends on the zone.
func (s Times) when(clock time.Time) time.Time {
	const day = 24 * time.Hour // clocks are not changed twice in two days
	before := s.instant(clock, clock.Add(-day))
	for _, at := range []time.Time{before, s.instant(clock, clock.Add(day))} {
		if s.clock(at).Equal(clock) {
			return at
		}
	}
	forward, _ := before.In(s.zone).ZoneBounds()
	return forward
}

// instant returns when the clocks show this time if they differ from UTC as they do at another time.
func (s Times) instant(clock, as time.Time) time.Time {
	return clock.Add(-s.clock(as).Sub(as))
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

// withoutGo returns the text of an error of package cron without the part about the function of Go that has refused a number.
func withoutGo(err error) string {
	text, _, _ := strings.Cut(err.Error(), ": strconv.")
	return text
}

func invalid(field string, err error) error {
	return &rollout.InvalidError{Field: field, Message: fmt.Sprint(err)}
}
