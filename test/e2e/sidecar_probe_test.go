package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const gameServer = `
apiVersion: game.kruise.io/v1alpha1
kind: GameServer
metadata: {name: web}
`

// opsState of the GameServer with the pod's name.
func (s *sidecarFixture) opsState(ctx context.Context) (string, error) {
	server := &unstructured.Unstructured{}
	server.SetAPIVersion("game.kruise.io/v1alpha1")
	server.SetKind("GameServer")
	if err := s.Get(ctx, s.key("web"), server); err != nil {
		return "", err
	}
	state, _, err := unstructured.NestedString(server.Object, "spec", "opsState")
	return state, err
}

// TestProbeFlipsLabelsReadinessGateAndCustomResource is the KEP's game: what the program answers decides over the pod's
// marks, over a readiness gate, and over /spec/opsState of a GameServer.
func TestProbeFlipsLabelsReadinessGateAndCustomResource(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	s.apply(s.example("examples/game-config.yaml"))
	s.apply(gameServer)
	pod := s.examplePod("pod.yaml")
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "game.kruise.io/answers"}}
	s.start(pod)
	s.accepted(pod.Name, "v1")
	for _, step := range []struct {
		state, line          string
		idle, cost, opsState string
		ready                corev1.ConditionStatus
	}{
		{"unknown", "rm -f /tmp/state", "false", "5", "None", corev1.ConditionFalse},
		{"idle", "echo idle >/tmp/state", "true", "-10", "WaitToBeDeleted", corev1.ConditionTrue},
		{"allocated", "echo allocated >/tmp/state", "false", "10", "Allocated", corev1.ConditionTrue},
		// A state without a policy takes the marks away again; the member of the custom resource stays.
		{"draining", "echo draining >/tmp/state", "", "", "Allocated", corev1.ConditionTrue},
		{"unknown again", "rm -f /tmp/state", "false", "5", "None", corev1.ConditionFalse},
	} {
		s.exec(pod.Name, "nginx", step.line)
		s.awaitPod(pod.Name, "to be marked as "+step.state, func(pod *corev1.Pod) bool {
			return pod.Labels["gameserver-idle"] == step.idle && pod.Annotations[corev1.PodDeletionCost] == step.cost &&
				condition(pod, "game.kruise.io/answers") == step.ready && condition(pod, corev1.PodReady) == step.ready
		})
		s.await("opsState "+step.opsState, func(ctx context.Context) (bool, error) {
			state, err := s.opsState(ctx)
			return state == step.opsState, err
		})
	}
}

// TestPodProbeAnnotationBecomesConditions is the serverless protocol of PodProbeMarker: its webhook writes the probes into
// an annotation of the pod, and whoever is in the pod writes the conditions.
func TestPodProbeAnnotationBecomesConditions(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	pod := s.examplePod("pod.yaml")
	pod.Annotations = map[string]string{"kruise.io/podprobe": `[
		{"name":"page","containerName":"nginx","podConditionType":"game.kruise.io/page","probe":{"httpGet":{"path":"/","port":80},"periodSeconds":1}},
		{"name":"closed","containerName":"nginx","podConditionType":"game.kruise.io/closed","probe":{"tcpSocket":{"port":81},"periodSeconds":1}}]`}
	s.start(pod)
	s.awaitCondition(pod.Name, "game.kruise.io/page", corev1.ConditionTrue)
	s.awaitCondition(pod.Name, "game.kruise.io/closed", corev1.ConditionFalse, "refused")
	s.run("annotate", "pod", pod.Name, "--overwrite",
		`kruise.io/podprobe=[{"name":"page","containerName":"nginx","podConditionType":"game.kruise.io/page","probe":{"httpGet":{"path":"/none","port":80},"periodSeconds":1}}]`)
	s.awaitCondition(pod.Name, "game.kruise.io/page", corev1.ConditionFalse, "404")
	s.awaitPod(pod.Name, "to lose the condition without a probe", func(pod *corev1.Pod) bool { return condition(pod, "game.kruise.io/closed") == "" })
	s.run("annotate", "pod", pod.Name, "kruise.io/podprobe-")
	s.awaitPod(pod.Name, "to lose all conditions of probes", func(pod *corev1.Pod) bool { return condition(pod, "game.kruise.io/page") == "" })
	if pod := s.pod(pod.Name); condition(pod, "refit.dev/SidecarSelfTest") == "" || condition(pod, corev1.PodReady) == "" {
		t.Errorf("conditions %+v: the conditions of others are missing", pod.Status.Conditions)
	}
}
