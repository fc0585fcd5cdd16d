package inpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/plugin"
)

// A program that starts after the files are in place reads them at its start, so it need not be reloaded.
func TestAProgramThatWaitsForItsSidecarIsNotToldAgainOfItsFiles(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	waits := &corev1.Pod{}
	waits.Spec.InitContainers = []corev1.Container{{Name: "refit", RestartPolicy: &always, StartupProbe: &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz"}},
	}}}
	runs := waits.DeepCopy()
	runs.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	for name, tt := range map[string]struct {
		pod                      *corev1.Pod
		quiet, runPendingReloads bool
	}{
		"it waits for the sidecar": {waits, true, false},
		"it has been started":      {runs, false, false},
	} {
		p := &Plugin{
			host:    plugin.Host{Own: "refit", Observed: func() *corev1.Pod { return tt.pod }},
			config:  &Config{},
			updater: hotupdate.Config{Reload: []action.Action{{Name: "reload"}}},
		}
		if process.Before(tt.pod, "refit") != tt.quiet {
			t.Fatalf("%s: the pod is not as the case says", name)
		}
		var request hotupdate.Request
		if p.setReload(t.Context(), &request); request.NoReload != tt.quiet || request.ReloadLater != tt.runPendingReloads {
			t.Errorf("%s: quiet %t, told later %t; want %t, %t", name, request.NoReload, request.ReloadLater, tt.quiet, tt.runPendingReloads)
		}
	}
}
