package control

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/crr"
)

// boundedPods is a cache in which all pods are too large, because it keeps more of them for other features.
func boundedPods(a *apiServer) client.Client {
	return interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if pods, ok := list.(*corev1.PodList); ok {
				for i := range pods.Items {
					pods.Items[i].Spec.Containers, pods.Items[i].Status.ContainerStatuses = nil, nil
				}
			}
			return err
		},
	})
}

func TestPodsThatAreTooLargeForTheCacheAreRestarted(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	a.reconciler.client = boundedPods(a)
	for range 2 {
		a.settle()
		a.complete(crr.Outcome{})
	}
	a.settle()
	if s := a.rollout().Status; !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionSucceeded) || s.RestartedPods != 2 {
		t.Errorf("%+v", s)
	}
}

func TestARolloutSaysThatAPodIsTooLargeForIt(t *testing.T) {
	t.Parallel()
	large := podOf("web-abc", 0)
	for i := range 40 {
		name := fmt.Sprint("more-", i)
		large.Spec.Containers = append(large.Spec.Containers, corev1.Container{Name: name})
		large.Status.ContainerStatuses = append(large.Status.ContainerStatuses, corev1.ContainerStatus{Name: name})
	}
	a := newAPIServer(t, deployment(), large, object())
	a.reconciler.client = boundedPods(a)
	a.settle()
	if f := a.rollout().Status.Failures; len(a.pods()) > 0 || len(f) != 1 || !strings.Contains(f[0].Message, "too large for refit-manager") {
		t.Errorf("%v, %+v", a.pods(), f)
	}
}

func TestRolloutsOfANamespaceWithLargePodsWaitBeforeThePodsAreReadAgain(t *testing.T) {
	t.Parallel()
	large := func(i int) *corev1.Pod {
		pod := podOf("web-abc", i)
		pod.Annotations = map[string]string{"example.com/x": strings.Repeat("x", 1<<20)}
		return pod
	}
	a := newAPIServer(t, deployment(), large(0), large(1), large(2), object())
	a.reconciler.client = boundedPods(a)
	lists := 0
	a.reconciler.live = interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.PodList); ok {
				lists++
			}
			return c.List(ctx, list, opts...)
		},
	})
	first, err := a.reconciler.Reconcile(t.Context(), key)
	if err != nil || lists == 0 || len(a.pods()) == 0 {
		t.Fatalf("%+v, %v; %d lists of pods, restarted %v", first, err, lists, a.pods())
	}
	before := lists
	again, err := a.reconciler.Reconcile(t.Context(), key)
	if err != nil || lists != before || again.RequeueAfter < time.Second || again.RequeueAfter > 5*time.Second {
		t.Errorf("%+v, %v; %d lists of pods, before %d", again, err, lists, before)
	}
	if delay := a.reconciler.reads.delay("another", a.now); delay > 0 {
		t.Errorf("another namespace waits for %s", delay)
	}
	a.now = a.now.Add(again.RequeueAfter)
	if next, err := a.reconciler.Reconcile(t.Context(), key); err != nil || lists == before {
		t.Errorf("after the delay: %+v, %v; %d lists of pods, before %d", next, err, lists, before)
	}
}
