package workload

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// later adds a pod on another node while an update waits at its partition, and has the images of the first pods pulled.
func (w *world) later() {
	w.t.Helper()
	w.pulling()
	w.spec(func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.Partition = new(intstr.FromString("100%")) })
	w.image("app:2")
	w.rounds(4)
	w.end(&w.jobs()[0])
	w.rounds(4)
	if w.updated() != 0 || w.condition("web", v1alpha1.ConditionProgressing) != "True Partition" {
		w.t.Fatalf("%d pods are updated, %s", w.updated(), w.condition("web", v1alpha1.ConditionProgressing))
	}
	d := w.deployment()
	d.Spec.Replicas = new(int32(3))
	w.check(w.Update(w.t.Context(), d))
	set := &appsv1.ReplicaSet{}
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-a"}, set))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-a-2", UID: "uid-web-a-2", Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(w.now)}}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsKind("ReplicaSet"))}
	pod.Spec = *set.Spec.Template.Spec.DeepCopy()
	pod.Spec.NodeName = "another"
	w.check(w.Create(w.t.Context(), pod))
	daemon := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "refit-system", Name: "refit-daemon-y", Labels: map[string]string{"app.kubernetes.io/name": "refit-daemon"}}}
	daemon.Spec.NodeName = "another"
	daemon.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.check(w.Create(w.t.Context(), daemon))
	w.rounds(3)
	w.spec(func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.Partition = nil })
}

// end ends a job with the image on all nodes.
func (w *world) end(job *v1beta1.ImagePullJob) {
	w.t.Helper()
	n := int32(len(job.Spec.Selector.Names))
	job.Status.Desired, job.Status.Succeeded, job.Status.CompletionTime = n, n, &metav1.Time{Time: w.now}
	w.check(w.Update(w.t.Context(), job))
}

func TestImagesAreAlsoPulledForALaterPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.later()
	w.rounds(20)
	jobs := w.jobs()
	if len(jobs) != 2 || w.updated() != 2 || w.condition("web", v1alpha1.ConditionProgressing) != "True PullingImages" {
		t.Fatalf("%d jobs, %d pods are updated, %s", len(jobs), w.updated(), w.condition("web", v1alpha1.ConditionProgressing))
	}
	for _, job := range jobs {
		if job.Status.CompletionTime == nil {
			if got := strings.Join(job.Spec.Selector.Names, " "); got != "another" {
				t.Errorf("nodes %q", got)
			}
			w.end(&job)
		}
	}
	w.rounds(20)
	if w.updated() != 3 || w.condition("web", v1alpha1.ConditionReady) != "True Completed" || w.sent("PrePullSkipped") {
		t.Errorf("%d pods are updated, %s", w.updated(), w.condition("web", v1alpha1.ConditionReady))
	}
}

// A quota that allows one job must not keep the other pods from being updated.
func TestLaterPodIsUpdatedWhereNoJobCanBeCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.later()
	refused := 0
	w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, ok := object.(*v1beta1.ImagePullJob); ok {
				refused++
				return apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "any", errors.New("quota"))
			}
			return c.Create(ctx, object, options...)
		},
	})
	w.rounds(30)
	if w.updated() != 3 || w.condition("web", v1alpha1.ConditionReady) != "True Completed" || refused != 1 || !w.sent("PrePullSkipped") {
		t.Errorf("%d pods are updated, %s, %d jobs were refused", w.updated(), w.condition("web", v1alpha1.ConditionReady), refused)
	}
}
