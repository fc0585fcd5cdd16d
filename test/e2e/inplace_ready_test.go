package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Neither the gate nor Ready may be opened for the readiness of the instance before: the new images are never ready.
func TestPodIsNeverReadyWithAnInstanceThatIsNot(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	app := shell("app", obedient)
	app.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		Exec: &corev1.ExecAction{Command: []string{"grep", "-q", "1.36", "/etc/image-tag"}},
	}}
	for round := range 8 {
		pod := s.podOf("web", app)
		before := s.gated(pod)
		events, err := s.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace), client.MatchingFields{"metadata.name": "web"})
		s.check(err, "watch the pod")
		ended := make(chan []string)
		go func() {
			var wrong []string
			for event := range events.ResultChan() {
				is, ok := event.Object.(*corev1.Pod)
				switch {
				case !ok || event.Type != watch.Modified || is.Spec.Containers[0].Image != newImage || !podReady(is):
				case status(is, "app").ContainerID != status(before, "app").ContainerID:
					wrong = append(wrong, is.ResourceVersion)
				default:
					s.observed("round %d: kubelet has written Ready True after the drain, of the instance before", round)
				}
			}
			ended <- wrong
		}()
		if said, code := s.set("image", "pod/web", "app="+newImage, "--timeout=8s"); code != 124 {
			t.Errorf("round %d: exit code %d:\n%s", round, code, said)
		}
		s.replaced(before, "app")
		events.Stop()
		if wrong := <-ended; len(wrong) > 0 {
			t.Errorf("round %d: ready at resource versions %q", round, wrong)
		}
		s.remove(pod)
	}
}
