package configchange_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/configchange"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// FuzzConfigChanges makes templates and triggers of their parts, with any annotations: they are read or refused, within bounds.
func FuzzConfigChanges(f *testing.F) {
	const daily = "0 4 * * *"
	for _, seed := range hostile.Seeds() {
		f.Add(seed, "app", daily, "4h", "Europe/Berlin")
	}
	for _, text := range hostile.Texts {
		f.Add([]byte{1}, text, daily, "4h", "UTC")
		f.Add([]byte{1}, "app", text, "4h", "UTC")
		f.Add([]byte{1}, "app", daily, text, "UTC")
		f.Add([]byte{1}, "app", daily, "4h", text)
	}
	f.Add([]byte{1}, strings.Repeat("app,", 60_000), "0 0 30 2 *", "168h", "")
	f.Add([]byte{1}, strings.Repeat(",", 250_000), "* * * * *", "1e300000000h", "../../etc/passwd")
	f.Add([]byte{1}, "app", "0-59/1,0-59/1 0 29 2 1", "9999999999999999h", "Local")
	f.Fuzz(func(t *testing.T, seed []byte, containers, window, duration, zone string) {
		watchdog.Watch(t, func() {
			var template corev1.PodSpec
			if foreign.Object(hostile.JSON(template, seed), &template) != nil {
				template = corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}
			}
			_, err := configchange.Read(map[string]string{
				v1alpha1.AnnotationRestartOnConfigChange: containers, v1alpha1.AnnotationRestartMaxUnavailable: duration, v1alpha1.AnnotationRestartPaused: zone,
			}, &template)
			check(t, err)
			settings, err := configchange.Read(map[string]string{
				v1alpha1.AnnotationRestartOnConfigChange: containers,
				v1alpha1.AnnotationRestartWindow:         window, v1alpha1.AnnotationRestartWindowDuration: duration, v1alpha1.AnnotationRestartWindowTimeZone: zone,
			}, &template)
			check(t, err)
			if err != nil {
				return
			}
			var trigger v1alpha1.RestartTrigger
			if foreign.Object(hostile.JSON(trigger.Status, seed), &trigger.Status) != nil {
				trigger.Status = v1alpha1.RestartTriggerStatus{}
			}
			observed := configchange.Observation{Settings: settings, References: configchange.References(&template, settings.Containers)}
			for _, reference := range observed.References {
				observed.Objects = append(observed.Objects, v1alpha1.ConfigObject{Kind: reference.Kind, Name: reference.Name, Digest: "d"})
			}
			for _, condition := range configchange.Next(&trigger, observed, time.Unix(1.8e9, 0)).Status.Conditions {
				if condition.Type == v1alpha1.ConditionReady && (len(condition.Message) > 1<<15 || !utf8.ValidString(condition.Message)) {
					t.Errorf("a message of %d bytes: %.300q", len(condition.Message), condition.Message)
				}
			}
		})
	})
}

// check fails the test for an error that the workload's Event and the condition of its trigger could not have.
func check(t *testing.T, err error) {
	t.Helper()
	if wrong := (*rollout.InvalidError)(nil); err != nil && (!errors.As(err, &wrong) || len(err.Error()) > 1000 || !utf8.ValidString(err.Error())) {
		t.Errorf("%.2000q", err.Error())
	}
}
