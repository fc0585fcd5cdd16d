package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// An image that does not exist stops no container, is reported with the words of the registry, and is undone where the policy
// says so.
func TestAnImageThatDoesNotExistStopsNoContainer(t *testing.T) {
	t.Parallel()
	for _, undo := range []bool{false, true} {
		t.Run(map[bool]string{false: "Pause", true: "Undo"}[undo], func(t *testing.T) {
			t.Parallel()
			w := newWorkload(t, "Deployment", "replicas: 3,")
			before := w.ready(3)
			spec := ", maxUnavailable: 3"
			if undo {
				spec += ", failurePolicy: Undo"
			}
			w.follows(spec)
			stop := w.unavailable("web")
			w.run("set", "image", w.ref, "app="+missingImage)
			if undo {
				w.await("the former template", func(ctx context.Context) (bool, error) {
					policy := &refitv1alpha1.InPlaceUpdatePolicy{}
					err := w.Get(ctx, w.key("web"), policy)
					return policy.Status.UndoneRevision != "", err
				})
				w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
				w.rolledOut()
			} else {
				policy := w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionFalse, refitv1alpha1.ReasonImagePullFailed)
				c := meta.FindStatusCondition(policy.Status.Conditions, refitv1alpha1.ConditionProgressing)
				w.observed("message: %s", c.Message)
				if !strings.Contains(c.Message, missingImage) || policy.Status.FailedPods != 0 {
					t.Errorf("message %q, %d failed pods", c.Message, policy.Status.FailedPods)
				}
			}
			if most := stop(); most > 0 {
				t.Errorf("%d pods were not ready at a time", most)
			}
			w.keeps(before)
			for i := range before {
				w.untouched(&before[i], "app")
			}
			w.run("set", "image", w.ref, "app="+newImage)
			w.updated(before, newImage, 1)
		})
	}
}

// The jobs belong to the policy, and have ended before the first container is stopped.
func TestImagesOfAWorkloadArePulledBeforeItIsUpdated(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "DaemonSet", ownDaemonSet)
	before := w.webs()
	w.follows("")
	w.run("set", "image", w.ref, "app="+newImage)
	after := w.updated(before, newImage, 1)
	var jobs v1beta1.ImagePullJobList
	w.check(w.List(t.Context(), &jobs, client.InNamespace(w.namespace)), "list ImagePullJobs")
	if len(jobs.Items) != 1 {
		t.Fatalf("%d ImagePullJobs", len(jobs.Items))
	}
	job := &jobs.Items[0]
	if job.Status.CompletionTime == nil || int(job.Status.Succeeded) != len(before) || job.OwnerReferences[0].Kind != refitv1alpha1.KindInPlaceUpdatePolicy {
		t.Errorf("status %+v, owners %v", job.Status, job.OwnerReferences)
	}
	for i := range after {
		if started := status(&after[i], "app").State.Running.StartedAt; started.Before(job.Status.CompletionTime) {
			t.Errorf("pod %s was updated at %s, before the end of the pull at %s", after[i].Name, started, job.Status.CompletionTime)
		}
	}
	w.run("delete", "inplaceupdatepolicy/web", "--timeout="+patience.String())
	w.await("end of the jobs", func(ctx context.Context) (bool, error) {
		err := w.List(ctx, &jobs, client.InNamespace(w.namespace))
		return len(jobs.Items) == 0, err
	})
}

// Kubelet does not restart a container for its environment.
func TestEnvironmentFromAChangedLabelIsUpdatedInPlace(t *testing.T) {
	t.Parallel()
	for kind, own := range map[string]string{"Deployment": "replicas: 2,", "StatefulSet": "serviceName: web, replicas: 2,"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorkload(t, kind, own)
			w.patches(`{"spec":{"template":{"metadata":{"labels":{"track":"stable"}},"spec":{"containers":[{"name":"app","env":[
				{"name":"TRACK","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['track']"}}}]}]}}}}`)
			w.rolledOut()
			before := w.ready(2)
			w.follows("")
			w.patches(`{"spec":{"template":{"metadata":{"labels":{"track":"canary"}}}}}`)
			after := w.updated(before, image, 1)
			for i := range after {
				if got := strings.TrimSpace(w.exec(after[i].Name, "app", "echo $TRACK")); got != "canary" {
					t.Errorf("pod %s has TRACK=%q", after[i].Name, got)
				}
			}
			w.once(after)
		})
	}
}

// once fails the test unless there is one request for each pod, and it has succeeded.
func (w *workload) once(pods []corev1.Pod) {
	w.t.Helper()
	var requests v1beta1.ContainerRecreateRequestList
	w.check(w.List(w.t.Context(), &requests, client.InNamespace(w.namespace)), "list ContainerRecreateRequests")
	if len(requests.Items) != len(pods) {
		w.t.Errorf("%d requests for %d pods", len(requests.Items), len(pods))
	}
	for i := range pods {
		at := slices.IndexFunc(requests.Items, func(r v1beta1.ContainerRecreateRequest) bool { return r.Spec.PodName == pods[i].Name })
		if at < 0 || !meta.IsStatusConditionTrue(requests.Items[at].Status.Conditions, v1beta1.ConditionSucceeded) {
			w.t.Errorf("pod %s: no request that has succeeded", pods[i].Name)
		}
	}
}
