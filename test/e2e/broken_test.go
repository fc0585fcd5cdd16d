package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// It counted as unavailable for the whole rollout once its sidecar was updated, with maxUnavailable 1 for ever.
func TestAPodThatWasBrokenBeforeItsUpdateDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	const n = 3
	s := newSidecarSet(t, n)
	s.reaches("to count the pods as updated", completed(n))
	s.run("set", "image", "pod/web-0", "app="+missingImage, "--namespace", s.namespace)
	s.awaitPod("web-0", "to wait for its image", func(pod *corev1.Pod) bool {
		waiting := status(pod, "app").State.Waiting
		return waiting != nil && strings.HasPrefix(waiting.Reason, "ErrImage") || waiting != nil && waiting.Reason == "ImagePullBackOff"
	})
	s.setsImage(newImage)
	s.reaches("to have updated all pods", func(status *v1beta1.SidecarSetStatus) bool {
		return status.UpdatedPods == n && status.UpdatedReadyPods == n-1
	})
	if got := s.images(n); got[newImage] != n {
		t.Errorf("images %v", got)
	}
}

// A rollout of the template to an image that does not exist leaves a pod beside those that serve.
func TestAStuckSurplusPodDoesNotHoldUpARestart(t *testing.T) {
	t.Parallel()
	s := newBackend(t, 2, obedient, 3)
	s.endpoints.await(2)
	s.run("set", "image", "deployment/web", "app="+missingImage, "--namespace", s.namespace)
	s.await("a pod that waits for its image", func(ctx context.Context) (bool, error) {
		return slices.ContainsFunc(s.pods(ctx), func(p corev1.Pod) bool {
			c := status(&p, "app")
			return c.State.Waiting != nil && c.State.Waiting.Reason == "ImagePullBackOff"
		}), nil
	})
	s.rollout("web")
	got := s.ended("web")
	c := meta.FindStatusCondition(got.Conditions, "Succeeded")
	if got.RestartedPods != 2 || c.Status != metav1.ConditionTrue || c.Message != "2 of 2 pods have been restarted; 1 of 3 have not started their containers" {
		t.Errorf("%+v", got)
	}
	s.kept()
}

// It ended as Succeeded, with exit code 0.
func TestARestartOfPodsThatHaveNotStartedFails(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", obedient))
	pod.Spec.Containers[0].Image = missingImage
	labels := map[string]string{"app": "web"}
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	object.Spec = appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
	}
	s.check(s.Create(t.Context(), object), "make Deployment")
	s.await("a pod", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(object), object)
		return object.Status.Replicas == 1, err
	})
	out, code := s.restart("deployment/web", "-c", "app")
	if code != 1 || !strings.Contains(out, "1 of 1 pods are older than the rollout and have not started their containers") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// Progressing was Completed for a moment whenever an evicted pod was gone and the next one had not been created, on which kubectl wait returns.
func TestARolloutByEvictionIsCompletedOnlyWhenAllPodsAreReplaced(t *testing.T) {
	t.Parallel()
	const n = 2
	s, _ := sidecars(t, n, func(spec *v1beta1.SidecarSetSpec) { spec.UpdateStrategy.RecreatePolicy = v1beta1.RecreateEvict }, "log")
	s.updated(n, "log")
	s.run("create", "rolebinding", "evict", "--clusterrole=refit-pod-evicter", "--serviceaccount="+systemNamespace+":refit-manager")
	s.setsSidecar("log", `[{"op":"add","path":"/spec/containers/0/env","value":[{"name":"LEVEL","value":"debug"}]}]`)
	err := until(t.Context(), 3*patience, func(ctx context.Context) (bool, error) {
		var set v1beta1.SidecarSet
		err := s.Get(ctx, client.ObjectKey{Name: s.namespace + "-log"}, &set)
		return set.Status.ObservedGeneration == set.Generation && reason(&set.Status, v1beta1.ConditionProgressing) == "Completed", err
	})
	s.check(err, "await the end of the rollout")
	for _, pod := range s.webs() {
		env := slices.ContainsFunc(containerOf(&pod, "log").Env, func(e corev1.EnvVar) bool { return e.Name == "LEVEL" })
		if !env || condition(&pod, corev1.PodReady) != corev1.ConditionTrue || pod.DeletionTimestamp != nil {
			t.Errorf("Completed while pod %s is old, not ready or being deleted", pod.Name)
		}
	}
	if pods := len(s.webs()); pods != n {
		t.Errorf("Completed with %d of %d pods", pods, n)
	}
}
