package control

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
)

// lead is what happens when another replica becomes the leader: it has the API server, and no memory.
func (w *world) lead() { w.r = newReconciler(w.r.client, w.r.Config) }

// slowly has pods take their time to end.
func (w *world) slowly() {
	w.t.Helper()
	for _, pod := range w.pods() {
		pod.Finalizers = []string{"test.refit.dev/ends-slowly"}
		w.check(w.Update(w.t.Context(), &pod))
	}
}

// ending are the names of the pods that are being deleted, with the condition that the API server sets when it evicts a pod.
func (w *world) ending() string {
	w.t.Helper()
	var names []string
	for _, pod := range w.pods() {
		if pod.DeletionTimestamp == nil {
			continue
		}
		names = append(names, pod.Name)
		if kubelet.Condition(&pod.Status, corev1.DisruptionTarget) == nil {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: metav1.NewTime(w.now),
			})
			w.check(w.Status().Update(w.t.Context(), &pod))
		}
	}
	return strings.Join(names, " ")
}

// end lets the pods that are being deleted go, and returns one of them.
func (w *world) end() corev1.Pod {
	w.t.Helper()
	var gone corev1.Pod
	for _, pod := range w.pods() {
		if pod.DeletionTimestamp == nil {
			continue
		}
		pod.Finalizers = nil
		w.check(w.Update(w.t.Context(), &pod))
		w.r.find("logs").remove(client.ObjectKeyFromObject(&pod), pod.UID)
		pod.DeletionTimestamp = nil
		gone = pod
	}
	return gone
}

// looks lets the controller look a few times, a second apart, and returns which pods are being deleted at the end.
func (w *world) looks() string {
	w.t.Helper()
	for range 4 {
		w.look()
		w.now = w.now.Add(time.Second)
		w.ending()
	}
	return w.ending()
}

func TestPodsThatAnotherReplicaHasEvictedCountAgainstMaxUnavailable(t *testing.T) {
	t.Parallel()
	w := stateful(t, func(*v1beta1.SidecarSetSpec) {})
	w.slowly()
	first := w.looks()
	if first == "" || strings.Contains(first, " ") {
		t.Fatalf("at first %q are evicted", first)
	}
	w.lead()
	if got := w.looks(); got != first {
		t.Fatalf("after a change of the leader %q are being deleted, with maxUnavailable 1", got)
	}
	gone := w.end()
	if got := w.looks(); got != "" {
		t.Fatalf("%q is evicted before the first pod is created again", got)
	}
	gone.CreationTimestamp = metav1.NewTime(w.now)
	w.createAgain(&gone)
	if got := w.looks(); got == "" || got == first || strings.Contains(got, " ") {
		t.Errorf("%q is evicted when the first pod has been created again", got)
	}
}

func TestARepairOfAnotherReplicaIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.change(func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.RepairPolicy = v1beta1.RepairEvict })
	w.miss("a", "b", "c")
	w.slowly()
	w.now = w.now.Add(time.Second)
	if got := w.looks(); got != "a" {
		t.Fatalf("at first %q are evicted", got)
	}
	w.lead()
	if got := w.looks(); got != "a" {
		t.Fatalf("after a change of the leader %q are being deleted", got)
	}
	w.end()
	if got := w.looks(); got != "" {
		t.Fatalf("%q is evicted before there is a replacement", got)
	}
	w.replace("new")
	if got := w.looks(); got != "b" {
		t.Errorf("%q is evicted after the replacement", got)
	}
}

// The watch may be faster than the answer to the eviction.
func TestEvictionWhoseEventComesFirstCounts(t *testing.T) {
	t.Parallel()
	w := stateful(t, func(*v1beta1.SidecarSetSpec) {})
	w.slowly()
	w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
		SubResourceCreate: func(ctx context.Context, c client.Client, subresource string, object, body client.Object, options ...client.SubResourceCreateOption) error {
			err := c.SubResource(subresource).Create(ctx, object, body, options...)
			w.ending() //nolint:contextcheck // the test's own
			w.check(w.r.observeAll(ctx, w.r.find("logs")))
			return err
		},
	})
	if got := w.looks(); got == "" || strings.Contains(got, " ") {
		t.Errorf("%q are being deleted, with maxUnavailable 1", got)
	}
}
