package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// referenceConfig is the example of the KEP, its indentation mended, in the spelling that the reference implementation
// reads, with shorter times.
const referenceConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: kidecar-config}
data:
  config.yaml: |
    plugins:
      - name: hot_update
        config:
          bootOrder: 1
          fileDir: /app/downloads
          loadPatchType: signal
          signal:
            processName: 'nginx: master process nginx'
            signalName: SIGHUP
          storageConfig:
            inKube:
              annotationKey: sidecar.vke.volcengine.com/hot-update-result
            type: InKube
      - name: http_probe
        config:
          startDelaySeconds: 1
          probeIntervalSeconds: 1
          endpoints:
            - url: "http://localhost:80/state"
              method: "GET"
              timeout: 30
              expectedStatusCode: 200
              storageConfig:
                type: InKube
                inKube:
                  annotationKey: http_probe
                  target:
                    group: game.kruise.io
                    version: v1alpha1
                    resource: gameservers
                    name: ${SELF:POD_NAME}
                    namespace: ${SELF:POD_NAMESPACE}
                  jsonPath: /spec/opsState
                  markerPolices:
                    - state: idle
                      labels:
                        gameserver-idle: 'true'
                      annotations:
                        controller.kubernetes.io/pod-deletion-cost: '-10'
                    - state: allocated
                      labels:
                        gameserver-idle: 'false'
                      annotations:
                        controller.kubernetes.io/pod-deletion-cost: '10'
          bootorder: 0
    restartpolicy: Always
    resources:
      CPU: 100m
      Memory: 128Mi
    sidecarstartorder: Before
`

// TestConfigurationOfTheReferenceRunsUnchanged from where the reference has it. Nobody but who may forward ports reaches the
// sidecar then: it listens on loopback.
func TestConfigurationOfTheReferenceRunsUnchanged(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	s.apply(referenceConfig)
	s.apply(gameServer)
	pod := s.examplePod("pod.yaml")
	sidecar := &pod.Spec.Containers[1]
	sidecar.Args = nil
	sidecar.VolumeMounts = append(sidecar.VolumeMounts, corev1.VolumeMount{Name: "kidecar", MountPath: "/opt/kidecar"})
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "kidecar", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "kidecar-config"}},
	}})
	pod = s.start(pod)
	if got := s.update(pod.Name, "", "v1", s.source("v1/default.conf")); got.code != http.StatusOK {
		t.Fatalf("update: %+v", got)
	}
	s.serves(pod.Name, "this is v1")
	s.awaitPod(pod.Name, "to tell of v1", func(pod *corev1.Pod) bool {
		return pod.Annotations["sidecar.vke.volcengine.com/hot-update-result"] == "v1: Update success"
	})
	for state, idle := range map[string]string{"idle": "true", "allocated": "false"} {
		s.exec(pod.Name, "nginx", "echo "+state+" >/tmp/state")
		s.awaitPod(pod.Name, "to be marked as "+state, func(pod *corev1.Pod) bool {
			return pod.Labels["gameserver-idle"] == idle && pod.Annotations["http_probe"] == state
		})
		s.await("opsState "+state, func(ctx context.Context) (bool, error) {
			got, err := s.opsState(ctx)
			return got == state, err
		})
	}
	dial := func(port string) string {
		return s.exec("files", "nginx", "nc -w 3 "+pod.Status.PodIP+" "+port+" </dev/null 2>&1 && echo connected || true")
	}
	if out := dial("80"); !strings.Contains(out, "connected") {
		t.Errorf("another pod does not reach the program: %s", out)
	}
	if out := dial("5000"); !strings.Contains(out, "refused") {
		t.Errorf("another pod reaches the sidecar: %s", out)
	}
}
