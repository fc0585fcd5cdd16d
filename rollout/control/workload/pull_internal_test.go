package workload

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/rollout/control/deleted"
)

// pulling has a daemon on the node pull images, and the pods use a pull secret.
func (w *world) pulling() {
	w.t.Helper()
	w.r.PrePull, w.r.Daemons = true, cache.Daemons{Refit: "refit-system"}
	daemon := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "refit-system", Name: "refit-daemon-x", Labels: map[string]string{"app.kubernetes.io/name": "refit-daemon"}}}
	daemon.Spec.NodeName = "node"
	daemon.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.check(w.Create(w.t.Context(), daemon))
	for _, pod := range w.pods() {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}, {Name: "gone"}}
		w.check(w.Update(w.t.Context(), &pod))
	}
	w.check(w.Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "registry"}}))
}

func (w *world) jobs() []v1beta1.ImagePullJob {
	w.t.Helper()
	var list v1beta1.ImagePullJobList
	w.check(w.List(w.t.Context(), &list))
	return list.Items
}

// sent reports whether an Event has these words.
func (w *world) sent(words string) bool {
	for len(w.events) > 0 {
		if strings.Contains(<-w.events, words) {
			return true
		}
	}
	return false
}

func TestImagesArePulledByAJobOfThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pulling()
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:2" })
	w.rounds(4)
	if w.updated() != 0 || w.condition("web", v1alpha1.ConditionProgressing) != "True PullingImages" || len(w.jobs()) != 1 {
		t.Fatalf("%d pods are updated, %s, %d jobs", w.updated(), w.condition("web", v1alpha1.ConditionProgressing), len(w.jobs()))
	}
	job := w.jobs()[0]
	if job.Namespace != "shop" || job.Spec.Image != "app:2" || strings.Join(job.Spec.Selector.Names, " ") != "node" || strings.Join(job.Spec.PullSecrets, " ") != "registry" || job.OwnerReferences[0].UID != "policy-web" {
		t.Errorf("%+v", job)
	}
	job.Status.Desired, job.Status.Succeeded, job.Status.CompletionTime = 1, 1, &metav1.Time{Time: w.now}
	w.check(w.Update(t.Context(), &job))
	w.rounds(20)
	if w.updated() != 2 || w.condition("web", v1alpha1.ConditionReady) != "True Completed" || w.sent("PrePullSkipped") {
		t.Errorf("%d pods are updated, %s", w.updated(), w.condition("web", v1alpha1.ConditionReady))
	}
}

func TestPodsAreNotListedWhileImagesArePulled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pulling()
	_, lists := w.cached(new(bool))
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:2" })
	for range 10 {
		w.event()
		w.rounds(1)
	}
	if got := w.condition("web", v1alpha1.ConditionProgressing); got != "True PullingImages" || *lists > 2 {
		t.Errorf("%s, the pods were listed %d times from the API server", got, *lists)
	}
}

// A quota, or a Secret that nobody has allowed refit-manager to read, holds no update up.
func TestPodsAreUpdatedWhereNoJobCanBeCreated(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "any", errors.New("no"))
	for name, tt := range map[string]struct {
		set  func(*world)
		said string
	}{
		"refused": {func(w *world) {
			w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if _, ok := object.(*v1beta1.ImagePullJob); ok {
						return forbidden
					}
					return c.Create(ctx, object, options...)
				},
			})
		}, "create ImagePullJob"},
		"a secret that must not be read": {func(w *world) {
			w.r.Live = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if key.Name == "registry" {
						return forbidden
					}
					return c.Get(ctx, key, object, options...)
				},
			})
		}, "refit-pull-secret-reader in namespace shop"},
		"pulls are off": {func(w *world) { w.r.PrePull = false }, "--images=false"},
	} {
		w := newWorld(t)
		w.pulling()
		tt.set(w)
		w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:2" })
		w.rounds(25)
		if w.updated() != 2 || w.condition("web", v1alpha1.ConditionReady) != "True Completed" || len(w.jobs()) != 0 {
			t.Errorf("%s: %d pods are updated, %s, %d jobs", name, w.updated(), w.condition("web", v1alpha1.ConditionReady), len(w.jobs()))
		}
		if !w.sent("PrePullSkipped") {
			t.Errorf("%s: nobody is informed", name)
		}
	}
}

func TestContainerIsRestartedByARequestOfThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	from := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['track']"}}
	refer := func(spec *corev1.PodSpec) { spec.Containers[0].Env = []corev1.EnvVar{{Name: "TRACK", ValueFrom: from}} }
	for _, pod := range w.pods() {
		refer(&pod.Spec)
		w.check(w.Update(t.Context(), &pod))
	}
	w.set(func(t *corev1.PodTemplateSpec) { refer(&t.Spec) })
	d := w.deployment()
	refer(&d.Spec.Template.Spec)
	w.check(w.Update(t.Context(), d))
	w.rounds(2)
	w.edit(func(t *corev1.PodTemplateSpec) { t.Labels["track"] = "canary" })
	w.rounds(6)
	if got := testutil.ToFloat64(w.r.metrics.writes.WithLabelValues("containerrecreaterequests")); got != 1 {
		t.Errorf("%g writes of requests", got)
	}
	var requests v1beta1.ContainerRecreateRequestList
	w.check(w.List(t.Context(), &requests))
	if len(requests.Items) != 1 {
		t.Fatalf("%d requests, %s", len(requests.Items), w.condition("web", v1alpha1.ConditionProgressing))
	}
	request := requests.Items[0]
	if request.Spec.PodName != "web-a-0" || request.Spec.Containers[0].Name != "app" || request.OwnerReferences[0].Kind != "InPlaceUpdatePolicy" || !strings.HasPrefix(request.Name, "web-") ||
		!strings.Contains(request.Annotations[v1beta1.AnnotationExpectedInstances], "containerd://app:1") {
		t.Errorf("%+v", request)
	}
}

// A user deletes a ContainerRecreateRequest while a container ignores TERM.
func TestADeletedRequestWhoseStopContinuesCountsForTheBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "restart"}}
	request.Spec.PodName = "web-a-1"
	request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{
		Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: "containerd://app:1",
	}}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	deleted.Events{EventHandler: on(w.r.onRequest), Requests: &w.r.deleted, Clock: w.r.Clock}.Delete(t.Context(), event.DeleteEvent{Object: request}, queue)
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:2" })
	for i := 0; i < 10 && w.updated() == 0; i++ {
		w.rounds(1)
	}
	for _, pod := range w.pods() { // one that is unavailable comes first
		if is := pod.Spec.Containers[0].Image; (is == "app:2") != (pod.Name == "web-a-1") {
			t.Errorf("%s has %s while web-a-1 is being stopped", pod.Name, is)
		}
	}
	w.rounds(20)
	if w.updated() != 2 {
		t.Errorf("%d pods are updated", w.updated())
	}
}

// set changes the template of the ReplicaSet.
func (w *world) set(change func(*corev1.PodTemplateSpec)) {
	w.t.Helper()
	set := &appsv1.ReplicaSet{}
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-a"}, set))
	change(&set.Spec.Template)
	w.check(w.Update(w.t.Context(), set))
}
