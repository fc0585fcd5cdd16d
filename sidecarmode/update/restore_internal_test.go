package update

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/kube/ownpod"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

func TestBeforeProgram(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	native := func(change func(*corev1.Pod)) *corev1.Pod {
		probe := &corev1.Probe{}
		probe.HTTPGet = &corev1.HTTPGetAction{Path: "/readyz"}
		pod := &corev1.Pod{}
		pod.Spec.InitContainers = []corev1.Container{{Name: "refit-sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), StartupProbe: probe}}
		pod.Spec.Containers = []corev1.Container{{Name: "app"}}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "refit-sidecar", State: running, Started: new(false)}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}}
		change(pod)
		return pod
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"pod not read":             {nil, false},
		"first start":              {native(func(*corev1.Pod) {}), true},
		"no status yet":            {native(func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }), true},
		"program ended long ago":   {native(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://1" }), true},
		"program runs":             {native(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = running }), false},
		"start-up probe succeeded": {native(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].Started = new(true) }), false},
		"no start-up probe":        {native(func(p *corev1.Pod) { p.Spec.InitContainers[0].StartupProbe = nil }), false},
		"probe that asks another":  {native(func(p *corev1.Pod) { p.Spec.InitContainers[0].StartupProbe.HTTPGet.Path = "/healthz" }), false},
		"beside the program": {native(func(p *corev1.Pod) {
			p.Spec.Containers, p.Spec.InitContainers = append(p.Spec.Containers, p.Spec.InitContainers...), nil
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := beforeProgram(tc.pod, "refit-sidecar"); got != tc.want {
				t.Errorf("beforeProgram is %t, want %t", got, tc.want)
			}
		})
	}
}

// An API server that has just started may answer 403 until it has read the roles.
func TestForbiddenIsTriedAgainForAMoment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		outage, refusals, tries int
		took                    time.Duration
		want                    error
	}{
		"the API server has just started":      {0, 2, 3, 3 * time.Second, nil},
		"the role is missing":                  {0, 100, 3, 3 * time.Second, ownpod.ErrForbidden},
		"the API server starts while we retry": {6, 2, 9, 25 * time.Second, nil},
		"the role is missing after an outage":  {6, 100, 9, 25 * time.Second, ownpod.ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &Plugin{host: plugin.Host{Logger: slog.New(slog.DiscardHandler)}}
				tries, began := 0, time.Now()
				err := p.retry(t.Context(), "read", lastRead, func() error {
					if tries++; tries <= tc.outage {
						return errors.New("connection refused")
					}
					if tries <= tc.outage+tc.refusals {
						return fmt.Errorf("get ConfigMap: %w", ownpod.ErrForbidden)
					}
					return nil
				})
				if !errors.Is(err, tc.want) || tries != tc.tries || time.Since(began) != tc.took {
					t.Errorf("%v after %d tries and %s", err, tries, time.Since(began))
				}
			})
		})
	}
}

// kubelet ends a sidecar whose start-up probe has failed, and it would begin again, for ever, without its program.
func TestStartupProbeOfTheExampleOutlastsARestore(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile("../../deploy/sidecar/examples/pod-native.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`periodSeconds: 1\n\s+failureThreshold: (\d+)`).FindSubmatch(manifest)
	if found == nil {
		t.Fatal("no start-up probe")
	}
	const lookAtPod = 10 // seconds before the plugins start
	if n, err := strconv.Atoi(string(found[1])); err != nil || n <= defaultWait+lookAtPod {
		t.Errorf("%d s, %v; want more than %d s", n, err, defaultWait+lookAtPod)
	}
}
