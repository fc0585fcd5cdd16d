package workload

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/kubelet"
)

// grow gives the Deployment more pods.
func (w *world) grow(to int) {
	w.t.Helper()
	d := w.deployment()
	d.Spec.Replicas = new(int32(to))
	w.check(w.Update(w.t.Context(), d))
	set := &appsv1.ReplicaSet{}
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-a"}, set))
	for i := len(w.pods()); i < to; i++ {
		pod := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name, pod.UID, pod.Labels = "shop", fmt.Sprintf("web-a-%d", i), types.UID(fmt.Sprintf("uid-web-a-%d", i)), map[string]string{"app": "web"}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsKind("ReplicaSet"))}
		pod.Spec.NodeName = "node"
		w.check(w.Create(w.t.Context(), pod))
	}
	w.rounds(3)
}

// cached replaces the cache of the controller by one that shows old pods while behind is set. It returns what is shown, and how often
// the pods were listed from the API server.
func (w *world) cached(behind *bool) (shown *corev1.PodList, lists *int) {
	shown, lists = &corev1.PodList{}, new(int)
	w.r.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			pods, ok := list.(*corev1.PodList)
			if !ok || new(client.ListOptions).ApplyOptions(options).Namespace != "shop" {
				return c.List(ctx, list, options...)
			}
			if !*behind {
				if err := c.List(ctx, shown, client.InNamespace("shop")); err != nil {
					return err
				}
			}
			*pods = *shown.DeepCopy()
			return nil
		},
	})
	w.r.Live = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*corev1.PodList); ok {
				*lists++
			}
			return c.List(ctx, list, options...)
		},
	})
	return shown, lists
}

// event is an event of some pod of the cluster: the watch works.
func (w *world) event() { w.r.lastPodEvent.Store(w.now.UnixNano()) }

func (w *world) updated() (n int) {
	w.t.Helper()
	for _, pod := range w.pods() {
		if pod.Spec.Containers[0].Image == "app:2" {
			n++
		}
	}
	return n
}

func (w *world) image(image string) {
	w.t.Helper()
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = image })
}

func TestPodsOfAnUpdateAreNotListedForEachPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(12)
	_, lists := w.cached(new(bool))
	w.image("app:2")
	for range 60 {
		w.event()
		w.rounds(1)
	}
	if got := w.condition("web", "Ready"); got != "True Completed" || w.updated() != 12 {
		t.Fatalf("%s, %d pods are updated", got, w.updated())
	}
	if *lists > 6 {
		t.Errorf("the pods of the update were listed %d times from the API server", *lists)
	}
	*lists = 0
	for range 10 {
		w.event()
		w.rounds(1)
	}
	if *lists != 0 {
		t.Errorf("without an update they were listed %d times", *lists)
	}
}

// A pod that was begun counts, although the cache does not show it yet.
func TestPodsThatTheCacheDoesNotShowYetCount(t *testing.T) {
	t.Parallel()
	behind := false
	w := newWorld(t)
	w.grow(10)
	shown, _ := w.cached(&behind)
	w.event()
	w.rounds(1)
	behind = true
	w.image("app:2")
	w.event()
	w.reconcile("web")
	pods := w.pods()
	w.unready(&pods[5]) // the next in the order
	pods[5].DeepCopyInto(&shown.Items[5])
	for range 5 {
		w.now = w.now.Add(100 * time.Millisecond)
		w.event()
		w.reconcile("web")
	}
	if n := w.updated(); n != 1 {
		t.Errorf("%d pods were begun with maxUnavailable 1", n)
	}
	behind = false
	for range 40 {
		w.event()
		w.rounds(1)
	}
	if n := w.updated(); n != 10 {
		t.Errorf("%d pods are updated in the end", n)
	}
}

// After an outage, and for a new leader, the cache may still show pods as ready that are not.
func TestPodsAreReadFromTheAPIServerWhenTheWatchIsSilent(t *testing.T) {
	t.Parallel()
	behind := false
	w := newWorld(t)
	w.grow(10)
	w.cached(&behind)
	w.rounds(1)
	behind = true
	pods := w.pods()
	w.unready(&pods[3])
	w.image("app:2")
	w.now = w.now.Add(time.Minute)
	for range 5 {
		w.reconcile("web")
	}
	for _, pod := range w.pods() {
		if pod.Spec.Containers[0].Image == "app:2" && pod.Name != pods[3].Name {
			t.Errorf("%s was updated although %s is not ready", pod.Name, pods[3].Name)
		}
	}
}

func (w *world) unready(pod *corev1.Pod) {
	w.t.Helper()
	*kubelet.Condition(&pod.Status, corev1.PodReady) = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.now)}
	w.check(w.Status().Update(w.t.Context(), pod))
}

// The watch shows events of other pods, and nothing of what was written some seconds ago.
func TestPodsAreReadFromTheAPIServerWhenTheWatchIsLate(t *testing.T) {
	t.Parallel()
	behind := false
	w := newWorld(t)
	w.grow(10)
	w.cached(&behind)
	w.event()
	w.rounds(1)
	w.spec(func(s *v1alpha1.InPlaceUpdatePolicySpec) {
		s.MaxUnavailable, s.Partition = new(intstr.FromInt32(2)), new(intstr.FromInt32(9))
	})
	behind = true
	w.image("app:2")
	w.event()
	w.reconcile("web")
	if w.updated() != 1 {
		t.Fatalf("%d pods are begun with partition 9 of 10", w.updated())
	}
	w.now = w.now.Add(3 * time.Second)
	pods := w.pods()
	w.unready(&pods[8])
	w.spec(func(s *v1alpha1.InPlaceUpdatePolicySpec) { s.Partition = nil })
	w.event()
	w.reconcile("web")
	for _, pod := range w.pods()[1:] {
		if pod.Spec.Containers[0].Image == "app:2" && pod.Name != pods[8].Name {
			t.Errorf("%s was updated while %s is being updated and %s is not ready", pod.Name, pods[0].Name, pods[8].Name)
		}
	}
}

func (w *world) status() v1alpha1.InPlaceUpdatePolicyStatus {
	w.t.Helper()
	p := w.policy("web")
	w.check(w.Get(w.t.Context(), client.ObjectKeyFromObject(p), p))
	return p.Status
}

func (w *world) spec(change func(*v1alpha1.InPlaceUpdatePolicySpec)) {
	w.t.Helper()
	p := w.policy("web")
	w.check(w.Get(w.t.Context(), client.ObjectKeyFromObject(p), p))
	change(&p.Spec)
	w.check(w.Update(w.t.Context(), p))
}

// A pod that is too large for the cache is compared as it is in the API server.
func TestPodsThatAreTooLargeForTheCacheAreUpdatedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cached(new(bool))
	list := w.r.client
	w.r.client = interceptor.NewClient(list.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if pods, ok := list.(*corev1.PodList); ok {
				for i := range pods.Items {
					pods.Items[i].Spec.Containers, pods.Items[i].Annotations = nil, nil
				}
			}
			return err
		},
	})
	w.image("app:2")
	for range 30 {
		w.event()
		w.rounds(1)
		if n := int(w.status().UpdatedPods); w.status().Update != nil && n > w.updated() {
			t.Fatalf("%d pods are updated, and the status says %d", w.updated(), n)
		}
	}
	if got := w.condition("web", "Ready"); got != "True Completed" || w.updated() != 2 {
		t.Errorf("%s, %d pods are updated", got, w.updated())
	}
}

// An event that is missed, or a cache that does not show a change, delays an update and does not stop it.
func TestUpdateGoesOnWithoutEvents(t *testing.T) {
	t.Parallel()
	behind := false
	w := newWorld(t)
	w.cached(&behind)
	w.event()
	w.rounds(1)
	w.image("app:2")
	begun := w.now
	for w.updated() < 2 || w.deployment().Spec.Paused {
		after := w.reconciled("web")
		behind = w.updated() > 0
		for _, pod := range w.pods() {
			w.kubelet(t.Context(), &pod)
		}
		if after == 0 || w.now.Sub(begun) > 5*time.Minute {
			t.Fatalf("%d pods are updated after %s; again after %s", w.updated(), w.now.Sub(begun), after)
		}
		w.now = w.now.Add(after)
		w.event() // of other pods
	}
}
