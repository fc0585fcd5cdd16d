package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1alpha1"
)

// TestPodsOnVirtualNodes is the serverless protocol from the manager's side. The node has no kubelet; what refit-sidecar
// would write in the pod the test writes.
func TestPodsOnVirtualNodes(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-virtual", Labels: map[string]string{"type": "virtual-kubelet"}}}
	s.check(s.Create(t.Context(), node), "make virtual node")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := s.Delete(ctx, node); err != nil {
			t.Errorf("delete virtual node: %v", err)
		}
	})
	var marker v1alpha1.PodProbeMarker
	s.check(yaml.Unmarshal([]byte(`
spec:
  selector: {matchLabels: {app: game}}
  probes:
  - {name: idle, containerName: main, podConditionType: game.example.com/idle, probe: {exec: {command: [cat, /tmp/idle]}},
     markerPolicy: [{state: Succeeded, labels: {idle: "yes"}}, {state: Failed, labels: {busy: "yes"}}]}
  - {name: marks-only, containerName: main, probe: {tcpSocket: {port: 80}}, markerPolicy: [{state: Failed, labels: {down: "yes"}}]}
`), &marker), "read marker")
	marker.Namespace, marker.Name = s.namespace, "game"
	s.check(s.Create(t.Context(), &marker), "create marker")

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "game-0", Labels: map[string]string{"app": "game"}}}
	pod.Spec = corev1.PodSpec{
		NodeName: node.Name, Containers: []corev1.Container{{Name: "main", Image: image}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
	// It has its probes from the beginning, as soon as the webhook knows the marker.
	s.await("pods to be created with their probes", func(ctx context.Context) (bool, error) {
		tried := pod.DeepCopy()
		err := s.Create(ctx, tried, client.DryRunAll)
		return err == nil && tried.Annotations["kruise.io/podprobemarker-list"] == "game", err
	})
	s.check(s.Create(t.Context(), pod), "create pod")
	if pod.Annotations["kruise.io/podprobe"] == "" {
		t.Errorf("created with annotations %v", pod.Annotations)
	}
	is := func(what string, done func(*corev1.Pod) bool) {
		t.Helper()
		s.await(what, func(ctx context.Context) (bool, error) {
			err := s.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			return err == nil && done(pod), err
		})
	}
	is("the pod to have the name of its probe", func(p *corev1.Pod) bool { return p.Annotations["kruise.io/podprobemarker-list"] == "game" })
	const want = `[{"name":"idle","containerName":"main","probe":{"exec":{"command":["cat","/tmp/idle"]}},"podConditionType":"game.example.com/idle"}]`
	if got := pod.Annotations["kruise.io/podprobe"]; got != want {
		t.Errorf("annotation %s, want %s", got, want)
	}
	for status, label := range map[string]string{"True": "idle", "False": "busy"} {
		condition := `{"status":{"conditions":[{"type":"game.example.com/idle","status":"` + status + `"}]}}`
		s.check(s.Status().Patch(t.Context(), pod, client.RawPatch("application/strategic-merge-patch+json", []byte(condition))), "write condition")
		is("the label of "+status, func(p *corev1.Pod) bool { return p.Labels[label] == "yes" && len(p.Labels) == 2 })
	}
	s.check(s.Delete(t.Context(), &marker), "delete marker")
	is("the marks to be gone", func(p *corev1.Pod) bool {
		for key := range p.Annotations {
			if strings.HasPrefix(key, "kruise.io/") {
				return false
			}
		}
		return len(p.Labels) == 1
	})
	var told v1alpha1.NodePodProbe
	if err := client.IgnoreNotFound(s.Get(t.Context(), client.ObjectKey{Name: node.Name}, &told)); err != nil || len(told.Spec.PodProbes) > 0 {
		t.Errorf("a daemon that is not there was told to probe %+v, %v", told.Spec, err)
	}
}
