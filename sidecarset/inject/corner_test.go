package inject_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/sidecarset/inject"
)

// injected is a pod with a SidecarSet.
func injected(t *testing.T, set string, pod []byte) (into corev1.Pod, raw []byte) {
	t.Helper()
	parsed := parsedFrom(t, set)
	compiled, err := inject.Compile(&parsed, "rev")
	if err != nil {
		t.Fatal(err)
	}
	result, err := inject.Apply(pod, inject.Plan{Sets: []*inject.Set{compiled}}, now)
	if err != nil {
		t.Fatal(err)
	}
	raw = apply(t, pod, result.Patch)
	if err := json.Unmarshal(raw, &into); err != nil {
		t.Fatal(err)
	}
	return into, raw
}

func TestDevicesAreSharedOnlyIfThatIsEnabled(t *testing.T) {
	t.Parallel()
	pod := asJSON(t, "{metadata: {name: web}, spec: {volumes: [{name: d, emptyDir: {}}], containers: [{name: app, image: app:1, volumeDevices: [{name: d, devicePath: /dev/d}]}]}}")
	for kind, want := range map[string]int{"enabled": 1, "disabled": 0} {
		got, _ := injected(t, "{metadata: {name: log}, spec: {containers: [{name: log, image: log:1, shareVolumeDevicePolicy: {type: "+kind+"}}]}}", pod)
		for _, c := range got.Spec.Containers {
			if c.Name == "log" && len(c.VolumeDevices) != want {
				t.Errorf("%s: devices %+v", kind, c.VolumeDevices)
			}
		}
	}
}

// Only containers that run beside the sidecar count, and not a sidecar that the pod has from the manifest of another pod.
func TestResourcesAreComputedFromWhatRunsBesideTheSidecar(t *testing.T) {
	t.Parallel()
	const set = "{metadata: {name: log}, spec: {containers: [{name: log, image: log:1, " +
		"resourcesPolicy: {targetContainersMode: sum, targetContainersNameRegex: '.*', resourcesExpr: {limits: {cpu: cpu}}}}]}}"
	pod := asJSON(t, `{metadata: {name: web}, spec: {
		initContainers: [{name: once, image: i:1, restartPolicy: OnFailure, resources: {limits: {cpu: 4}}}, {name: mesh, image: m:1, restartPolicy: Always, resources: {limits: {cpu: 2}}}],
		containers: [{name: app, image: app:1, resources: {limits: {cpu: 1}}}]}}`)
	limit := func(pod *corev1.Pod) string {
		for _, c := range pod.Spec.Containers {
			if c.Name == "log" {
				return c.Resources.Limits.Cpu().String()
			}
		}
		return "none"
	}
	first, raw := injected(t, set, pod)
	if got := limit(&first); got != "3" {
		t.Errorf("%s, want 3: the sum of app and mesh", got)
	}
	if again, _ := injected(t, set, raw); limit(&again) != "3" {
		t.Errorf("%s from its own manifest, want 3", limit(&again))
	}
}

// Also one whose name ends in -1, like the names of a hot upgrade's containers.
func TestASidecarThatTheSidecarSetNoLongerHasIsRemoved(t *testing.T) {
	t.Parallel()
	pod := asJSON(t, "{metadata: {name: web}, spec: {containers: [{name: app, image: app:1}]}}")
	_, raw := injected(t, "{metadata: {name: log}, spec: {containers: [{name: log-1, image: log:1}]}}", pod)
	// The SidecarSet has another one since, and the pod comes from the manifest of one that was injected before.
	got, _ := injected(t, "{metadata: {name: log}, spec: {containers: [{name: tail, image: tail:1}]}}", raw)
	var names []string
	for _, c := range got.Spec.Containers {
		names = append(names, c.Name)
	}
	if len(names) != 2 || names[0] != "app" && names[1] != "app" {
		t.Errorf("containers %v, want app and tail", names)
	}
}
