package configchange_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout/configchange"
)

// wants gives the workload further annotations.
func (f *fixture) wants(t *testing.T, annotations map[string]string) {
	t.Helper()
	all := map[string]string{v1alpha1.AnnotationRestartOnConfigChange: "app"}
	maps.Copy(all, annotations)
	settings, err := configchange.Read(all, template())
	if err != nil {
		t.Fatal(err)
	}
	f.observed.Settings = settings
}

// The fixture begins on a Sunday at 10:00 UTC.
func TestARestartWaitsForItsWindow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		begins, length, zone string
		after                time.Duration
	}{
		"in a window":                  {"0 8 * * *", "4h", "", 3 * time.Second},
		"at its last minute":           {"0 8 * * *", "2h1m", "", 3 * time.Second},
		"just after it":                {"0 8 * * *", "2h", "", 22 * time.Hour},
		"before it":                    {"0 12 * * *", "1h", "", 2 * time.Hour},
		"on workdays":                  {"0 8 * * 1-5", "4h", "", 22 * time.Hour},
		"another time zone":            {"0 11 * * *", "30m", "Europe/Paris", 3 * time.Second},
		"a window from the day before": {"0 20 * * 6", "20h", "", 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			annotations := map[string]string{v1alpha1.AnnotationRestartWindow: tc.begins, v1alpha1.AnnotationRestartWindowDuration: tc.length}
			if tc.zone != "" {
				annotations[v1alpha1.AnnotationRestartWindowTimeZone] = tc.zone
			}
			f.wants(t, annotations)
			begin := f.now
			f.set("env", "c")
			f.settle()
			if took := f.now.Sub(begin); len(f.created) != 1 || took != tc.after {
				t.Errorf("%d rollouts after %s, want one after %s", len(f.created), took, tc.after)
			}
		})
	}
}

// Changes outside of the window lead to one rollout, and the status says what it waits for.
func TestChangesOutsideOfAWindowAreOneRestart(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.wants(t, map[string]string{v1alpha1.AnnotationRestartWindow: "0 12 * * *", v1alpha1.AnnotationRestartWindowDuration: "1h"})
	f.set("env", "c")
	f.look(0)
	f.look(3)
	want := "ConfigMap env has changed: waiting for the window that begins at 2026-11-22T12:00:00Z"
	if reason, message := f.reason(); reason != v1alpha1.ReasonPending || message != want {
		t.Errorf("%s: %s", reason, message)
	}
	f.set("settings", "d")
	f.look(0)
	f.look(3)
	if f.settle(); len(f.created) != 1 || len(f.refresh) != 1 || f.now.Hour() != 12 {
		t.Errorf("%d rollouts, refreshed %q, at %s", len(f.created), f.refresh, f.now)
	}
}

func TestARestartThatNeedsApprovalIsPaused(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"true": true, "false": false} {
		f := newFixture()
		f.wants(t, map[string]string{v1alpha1.AnnotationRestartPaused: value})
		f.set("env", "c")
		f.settle()
		if len(f.created) != 1 || f.created[0].Spec.Paused != want {
			t.Errorf("%s: %+v", value, f.created)
		}
	}
}

func TestAWrongWindowIsNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"no duration":        {map[string]string{"refit.dev/restart-window": "0 2 * * *"}, "[refit.dev/restart-window-duration]: is required"},
		"only a duration":    {map[string]string{"refit.dev/restart-window-duration": "4h"}, "[refit.dev/restart-window]: is required"},
		"only a time zone":   {map[string]string{"refit.dev/restart-window-time-zone": "UTC"}, "[refit.dev/restart-window]: is required"},
		"no schedule":        {map[string]string{"refit.dev/restart-window": "at night", "refit.dev/restart-window-duration": "4h"}, "[refit.dev/restart-window]: "},
		"no such date":       {map[string]string{"refit.dev/restart-window": "0 0 30 2 *", "refit.dev/restart-window-duration": "4h"}, "no date matches it"},
		"no duration at all": {map[string]string{"refit.dev/restart-window": "0 2 * * *", "refit.dev/restart-window-duration": "long"}, "from 1m to 168h"},
		"too long":           {map[string]string{"refit.dev/restart-window": "0 2 * * *", "refit.dev/restart-window-duration": "169h"}, "from 1m to 168h"},
		"too short":          {map[string]string{"refit.dev/restart-window": "0 2 * * *", "refit.dev/restart-window-duration": "59s"}, "from 1m to 168h"},
		"no such zone": {map[string]string{
			"refit.dev/restart-window": "0 2 * * *", "refit.dev/restart-window-duration": "4h", "refit.dev/restart-window-time-zone": "Mars/Olympus",
		}, "[refit.dev/restart-window-time-zone]: "},
		"neither true nor false": {map[string]string{"refit.dev/restart-paused": "yes"}, "[refit.dev/restart-paused]: must be true or false"},
		"long and foreign": {map[string]string{
			"refit.dev/restart-window": strings.Repeat("\u202e", 10_000), "refit.dev/restart-window-duration": "4h",
		}, "[refit.dev/restart-window]: must be at most 256 bytes"},
		"foreign": {map[string]string{"refit.dev/restart-window": strings.Repeat("\u202e", 80), "refit.dev/restart-window-duration": "4h"}, "[refit.dev/restart-window]: "},
		"a long duration": {map[string]string{
			"refit.dev/restart-window": "0 2 * * *", "refit.dev/restart-window-duration": strings.Repeat("\u202e", 10_000),
		}, "[refit.dev/restart-window-duration]: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			annotations := map[string]string{v1alpha1.AnnotationRestartOnConfigChange: "app"}
			maps.Copy(annotations, tc.annotations)
			_, err := configchange.Read(annotations, template())
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 600 || strings.Contains(err.Error(), "\u202e") {
				t.Errorf("%.700v, want %s", err, tc.want)
			}
		})
	}
}
