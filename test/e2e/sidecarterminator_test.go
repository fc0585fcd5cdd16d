package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// OpenKruise's SidecarTerminator marks a pod of a Job whose main containers have ended, and requests that its sidecars be
// recreated. With the restart policy Never nothing starts them again, and the pod ends.
func TestSidecarTerminatorEndsThePodOfAJob(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("job", shell("app", `until [ -e /shared/done ]; do sleep 0.1; done`), shell("mesh", obedient))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.start(pod)
	s.exec("job", "mesh", "touch /shared/done")
	pod = s.awaitPod("job", "to have done its work", func(pod *corev1.Pod) bool { return status(pod, "app").State.Terminated != nil })
	marked := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"SidecarTerminated","status":"True"}]}}`))
	s.check(s.Status().Patch(t.Context(), pod.DeepCopy(), marked), "mark the pod")

	name := "sidecar-termination-" + string(pod.UID)
	s.ask(name, "job/mesh", strategy(v1beta1.ContainerRecreateRequestStrategy{
		ForceRecreate: true, FailurePolicy: v1beta1.FailurePolicyIgnore,
	}), func(r *request) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}
	})
	s.succeeded(name)
	pod = s.awaitPod("job", "to end", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	if mesh := status(pod, "mesh"); mesh.RestartCount != 0 || mesh.State.Terminated == nil || mesh.State.Terminated.ExitCode != 0 {
		t.Errorf("sidecar after the request: %+v", mesh)
	}
}
