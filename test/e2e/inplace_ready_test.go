package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	begun := 0
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
		if s.pod("web").Spec.Containers[0].Image == newImage { // a slow machine may need longer to begin
			s.replaced(before, "app")
			begun++
		}
		events.Stop()
		if wrong := <-ended; len(wrong) > 0 {
			t.Errorf("round %d: ready at resource versions %q", round, wrong)
		}
		s.remove(pod)
	}
	if begun < 4 {
		t.Errorf("%d updates have begun", begun)
	}
}

// kubelet looks at the runtime once a second. If a write to the pod made it look at once, containers that the daemon stops for
// their environment could be started earlier.
func TestWritesToAPodDoNotHastenTheStartAfterAStop(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	const pods = 6
	var all []*corev1.Pod
	for i := range pods {
		all = append(all, s.start(s.podOf(fmt.Sprintf("web-%d", i), shell("app", obedient))))
	}
	var took []time.Duration
	for _, before := range all {
		stopped := s.stop(before, "app")
		s.await("the next instance", func(ctx context.Context) (bool, error) {
			pod := &corev1.Pod{}
			pod.Namespace, pod.Name = s.namespace, before.Name
			touch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, time.Now().Format(time.RFC3339Nano))
			if err := s.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(touch))); err != nil {
				return false, err
			}
			is := status(pod, "app")
			return is.ContainerID != status(before, "app").ContainerID && is.State.Running != nil, nil
		})
		took = append(took, time.Since(stopped).Round(time.Millisecond))
	}
	slices.Sort(took)
	s.observed("next instance reported after %v, with an annotation changed every %s meanwhile", took, pollInterval)
	// At once is 0.1 s for an image. Looks at random times within a second are all this early once in a thousand runs.
	if took[pods-1] < 350*time.Millisecond {
		t.Errorf("all after at most %s: kubelet looks at the runtime when a pod is changed", took[pods-1])
	}
}
