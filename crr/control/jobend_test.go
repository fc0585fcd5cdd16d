package control

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/jobend"
	"github.com/refit-project/refit/internal/cache"
)

// jobPod is a pod whose main container has ended; mesh ends by a request, log by another image.
func jobPod() *corev1.Pod {
	pod := testPod()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Containers = []corev1.Container{
		{Name: "app", Image: "app:1"},
		{Name: "mesh", Image: "mesh:1", Env: []corev1.EnvVar{{Name: v1beta1.EnvTerminateSidecar, Value: "true"}, {Name: v1beta1.EnvTerminateSidecarWithImage, Value: "exit:1"}}},
		{Name: "log", Image: "log:1", Env: []corev1.EnvVar{{Name: v1beta1.EnvTerminateSidecarWithImage, Value: "exit:1"}}},
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "app", ContainerID: "containerd://app1", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
		{Name: "mesh", ContainerID: "containerd://mesh1", State: running}, {Name: "log", ContainerID: "containerd://log1", State: running},
	}
	return pod
}

func (w *apiServer) endJob(t *testing.T) time.Duration {
	t.Helper()
	r := jobEndReconciler{client: w, live: w, nodes: cache.NewNodes(w, w), now: func() time.Time { return noon }, log: discard}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func TestSidecarsOfAJobAreEndedOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		node      map[string]string
		images    []string
		requested []string
	}{
		"on a node":         {nil, []string{"app:1", "mesh:1", "exit:1"}, []string{"mesh"}},
		"on a virtual node": {map[string]string{"type": "virtual-kubelet"}, []string{"app:1", "exit:1", "exit:1"}, nil},
	} {
		node := testNode()
		node.Labels = tc.node
		w := newAPIServer(t, jobPod(), node)
		for range 5 {
			if again := w.endJob(t); again != jobEndAgain {
				t.Errorf("%s: again after %s", name, again)
			}
		}
		if diff := cmp.Diff([]string{"patch web/status", "patch web"}, w.writes); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", name, diff)
		}
		var images, requested []string
		for _, c := range w.pod().Spec.Containers {
			images = append(images, c.Image)
		}
		var list v1beta1.ContainerRecreateRequestList
		if err := w.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Items {
			if r.Name != "sidecar-termination-uid-1" || r.Namespace != "shop" {
				t.Errorf("%s: request %s/%s", name, r.Namespace, r.Name)
			}
			for _, c := range r.Spec.Containers {
				requested = append(requested, c.Name)
			}
		}
		if diff := cmp.Diff(tc.images, images) + cmp.Diff(tc.requested, requested); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAJobThatIsNotDoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Pod){
		"it runs":  func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State.Terminated = nil },
		"it ended": func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded },
		"deleted": func(pod *corev1.Pod) {
			pod.Finalizers, pod.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: noon}
		},
	} {
		pod := jobPod()
		change(pod)
		w := newAPIServer(t, pod, testNode())
		if again := w.endJob(t); again != 0 || len(w.writes) != 0 {
			t.Errorf("%s: again after %s, writes %q", name, again, w.writes)
		}
	}
	if again := newAPIServer(t, testNode()).endJob(t); again != 0 {
		t.Errorf("without the pod: again after %s", again)
	}
}

// The controller receives pods as the cache has trimmed them.
func TestTheCacheHasWhatTheEndOfAJobNeeds(t *testing.T) {
	t.Parallel()
	pod := jobPod()
	if !jobend.Due(trimmed(t, pod)) {
		t.Error("not due")
	}
	pod.Status.ContainerStatuses[0].State = pod.Status.ContainerStatuses[1].State
	if jobend.Due(trimmed(t, pod)) {
		t.Error("due while the main container runs")
	}
}
