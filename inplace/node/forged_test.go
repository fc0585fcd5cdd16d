package node_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Whoever may write the status of a pod can put the ID of a container of another pod there: that one is not stopped, no hook runs
// in it, and nothing of it is reported.
func TestAContainerOfAnotherPodIsLeftAlone(t *testing.T) {
	t.Parallel()
	game := container("game", "")
	game.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	for name, of := range map[string]metav1.ObjectMeta{
		"of another namespace":    {Namespace: "bank", Name: "a", UID: "v"},
		"of another pod":          {Namespace: "shop", Name: "b", UID: "v"},
		"with the UID of the pod": {Namespace: "bank", Name: "b", UID: "u"},
		"of the pod before":       {Namespace: "shop", Name: "a", UID: "v"},
	} {
		inWorld(t, []corev1.Container{game}, func(w *world) {
			w.owner = map[string]corev1.Pod{"game-9": {ObjectMeta: of}}
			w.hash["game-9"], w.image["game-9"], w.env["game-9"] = "1", "game:v1", map[string]string{"MODE": "secret"}
			w.change(func(pod *corev1.Pod) {
				update(pod)
				pod.Status.ContainerStatuses[0].ContainerID = "containerd://game-9"
			})
			w.pass(time.Minute)
			if w.hooks != 0 || len(w.begun) != 0 || strings.Contains(w.pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta], "game-9") {
				t.Errorf("%s: %d hooks, %d stops, reported %s", name, w.hooks, len(w.begun), w.pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta])
			}
		})
	}
}
