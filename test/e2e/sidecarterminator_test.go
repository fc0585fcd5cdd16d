package e2e_test

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
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

// refit-manager does both for a Job whose sidecars ask for it: one is stopped, one gets an image whose program ends at once.
func TestSidecarsOfAJobEndWithIt(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	mesh, log := shell("mesh", obedient), shell("log", `grep -q 1.35 /etc/image-tag && exit 0; `+obedient)
	mesh.Env = []corev1.EnvVar{{Name: v1beta1.EnvTerminateSidecar, Value: "true"}}
	log.Env = []corev1.EnvVar{{Name: v1beta1.EnvTerminateSidecarWithImage, Value: newImage}}
	template := s.podOf("job", shell("app", `until [ -e /shared/done ]; do sleep 0.1; done`), mesh, log).Spec
	template.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "job"}}
	job.Spec = batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: corev1.PodTemplateSpec{Spec: template}}
	s.check(s.Create(t.Context(), job), "create the Job")
	var pods corev1.PodList
	s.await("the pod of the Job to run", func(ctx context.Context) (bool, error) {
		err := s.List(ctx, &pods, client.InNamespace(s.namespace))
		return err == nil && len(pods.Items) == 1 && podReady(&pods.Items[0]), err
	})
	name := pods.Items[0].Name
	s.exec(name, "mesh", "touch /shared/done")
	pod := s.awaitPod(name, "to end", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	if condition(pod, v1beta1.ConditionSidecarTerminated) != corev1.ConditionTrue || pod.Spec.Containers[2].Image != newImage {
		t.Errorf("conditions %+v, images %+v", pod.Status.Conditions, pod.Spec.Containers)
	}
	s.await("the Job to be complete", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key("job"), job)
		return err == nil && job.Status.Succeeded == 1 && job.Status.CompletionTime != nil, err
	})
	s.succeeded(v1beta1.PrefixSidecarTermination + string(pod.UID))
}
