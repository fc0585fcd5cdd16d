package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/schedule"
)

func TestWrongSchedulesAreRefusedWithTheField(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schedule, zone, field string }{
		"five fields":       {schedule: "0 3 * * 1"},
		"name":              {schedule: "@daily"},
		"zone":              {schedule: "0 3 * * *", zone: "America/New_York"},
		"UTC":               {schedule: "0 3 * * *", zone: "Etc/UTC"},
		"six fields":        {schedule: "0 0 3 * * 1", field: "spec.schedule"},
		"hour 25":           {schedule: "0 25 * * *", field: "spec.schedule"},
		"words":             {schedule: "every day", field: "spec.schedule"},
		"interval":          {schedule: "@every 1h", field: "spec.schedule"},
		"zone in schedule":  {schedule: "TZ=Europe/Paris 0 3 * * *", field: "spec.schedule"},
		"cron's zone":       {schedule: "CRON_TZ=Europe/Paris 0 3 * * *", field: "spec.schedule"},
		"unknown zone":      {schedule: "0 3 * * *", zone: "Europe/Atlantis", field: "spec.timeZone"},
		"zone of a machine": {schedule: "0 3 * * *", zone: "local", field: "spec.timeZone"},
		"the machine's":     {schedule: "0 3 * * *", zone: "Local", field: "spec.timeZone"},
		"file":              {schedule: "0 3 * * *", zone: "../etc/passwd", field: "spec.timeZone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := schedule.Read(&v1alpha1.RestartScheduleSpec{Schedule: tc.schedule, TimeZone: tc.zone})
			var invalid *rollout.InvalidError
			if errors.As(err, &invalid) != (tc.field != "") || invalid != nil && invalid.Field != tc.field {
				t.Errorf("%v, want field %q", err, tc.field)
			}
		})
	}
}

func TestTimesAreThoseOfTheZoneAlsoWhenClocksAreChanged(t *testing.T) {
	t.Parallel()
	times, err := schedule.Read(&v1alpha1.RestartScheduleSpec{Schedule: "0 3 * * *", TimeZone: "Europe/Paris"})
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[string]string{
		"2026-10-24T00:00:00Z": "2026-10-24T01:00:00Z", // summer
		"2026-10-24T12:00:00Z": "2026-10-25T02:00:00Z", // the clocks go back in this night
		"2026-03-28T12:00:00Z": "2026-03-29T01:00:00Z", // and forward in this
	} {
		if got := times.After(at(after)); !got.Equal(at(want)) {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
	}
}

// Otherwise a nightly restart is skipped once a year, and carried out twice in another night.
func TestATimeThatClocksSkipOrShowTwiceIsDueOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		schedule, zone, after string
		want                  []string
	}{
		"skipped":                    {"30 2 * * *", "Europe/Paris", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"skipped, once a week":       {"30 2 * * 0", "Europe/Paris", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-04-05T00:30:00Z"}},
		"skipped, west of Greenwich": {"30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", []string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		"skipped, some of that hour": {"*/20 2 * * *", "Europe/Paris", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		"skipped with the next":      {"0 2,3 * * *", "Europe/Paris", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		"skipped half an hour":       {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		"skipped midnight":           {"@daily", "America/Havana", "2026-03-07T12:00:00Z", []string{"2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"}},
		"shown twice":                {"30 2 * * *", "Europe/Paris", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"shown twice, in the second": {"30 2 * * *", "Europe/Paris", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		"twice, west of Greenwich":   {"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		"every second hour":          {"0 */2 * * *", "Europe/Paris", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z"}},
		"every hour, forward":        {"0 * * * *", "Europe/Paris", "2026-03-29T00:30:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		"every hour, back":           {"0 * * * *", "Europe/Paris", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times, err := schedule.Read(&v1alpha1.RestartScheduleSpec{Schedule: tt.schedule, TimeZone: tt.zone})
			if err != nil {
				t.Fatal(err)
			}
			last := at(tt.after)
			for _, want := range tt.want {
				if got := times.After(last); !got.Equal(at(want)) {
					t.Errorf("after %s: %s, want %s", last, got, want)
				}
				if got := times.Last(last, at(want).Add(-time.Second)); !got.IsZero() {
					t.Errorf("missed before %s: %s", want, got)
				}
				last = at(want)
				if got := times.Last(at(tt.after), last.Add(time.Second)); !got.Equal(last) {
					t.Errorf("last at %s: %s", last, got)
				}
			}
		})
	}
}

func TestLastMissedTimeIsFoundAfterAnyWhile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schedule, begin, now, want string }{
		"none":                 {"0 3 * * *", "2026-11-22T03:00:00Z", "2026-11-22T12:00:00Z", ""},
		"this moment":          {"0 3 * * *", "2026-11-21T12:00:00Z", "2026-11-22T03:00:00Z", "2026-11-22T03:00:00Z"},
		"one":                  {"0 3 * * *", "2026-11-21T12:00:00Z", "2026-11-22T12:00:00Z", "2026-11-22T03:00:00Z"},
		"many":                 {"0 3 * * *", "2026-01-01T00:00:00Z", "2026-11-22T12:00:00Z", "2026-11-22T03:00:00Z"},
		"years of each minute": {"* * * * *", "2016-01-01T00:00:00Z", "2026-11-22T12:00:30Z", "2026-11-22T12:00:00Z"},
		"once a year":          {"0 0 1 1 *", "2020-06-01T00:00:00Z", "2026-11-22T12:00:00Z", "2026-01-01T00:00:00Z"},
		"leap day":             {"0 0 29 2 *", "2023-01-01T00:00:00Z", "2026-11-22T12:00:00Z", "2024-02-29T00:00:00Z"},
		"never":                {"0 0 30 2 *", "2020-06-01T00:00:00Z", "2026-11-22T12:00:00Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times, err := schedule.Read(&v1alpha1.RestartScheduleSpec{Schedule: tc.schedule})
			if err != nil {
				t.Fatal(err)
			}
			if got := times.Last(at(tc.begin), at(tc.now)); got.IsZero() != (tc.want == "") || tc.want != "" && !got.Equal(at(tc.want)) {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func at(text string) time.Time {
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return parsed
}
