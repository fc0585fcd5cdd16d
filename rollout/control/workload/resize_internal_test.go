package workload

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/internal/kubelet"
)

// trims makes the controller read pods as from the cache of the manager, which keeps only parts of them.
func (w *world) trims() {
	w.r.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if pods, ok := list.(*corev1.PodList); ok {
				for i := range pods.Items {
					cachedPod(w.t, &pods.Items[i]).DeepCopyInto(&pods.Items[i])
				}
			}
			return err
		},
	})
}

// resize is what kubelet does in two writes of the status: it allocates the resources, and reports the end.
func (w *world) resize(pod *corev1.Pod) {
	w.t.Helper()
	progress := func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizeInProgress }
	status, wanted := kubelet.StatusOf(pod, "app"), pod.Spec.Containers[0].Resources.Requests
	switch {
	case !wanted.Cpu().Equal(*status.AllocatedResources.Cpu()):
		status.AllocatedResources = wanted.DeepCopy()
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue})
	case slices.ContainsFunc(pod.Status.Conditions, progress):
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, progress)
	default:
		return
	}
	w.check(w.Status().Update(w.t.Context(), pod))
}

// An update waited for ever: the cache showed the resources as soon as kubelet had allocated them, and not that the resize went on. When
// it had ended, there was no event.
func TestAResizeIsFollowedByItsEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, pod := range w.pods() {
		kubelet.StatusOf(&pod, "app").AllocatedResources = cpu("10m")
		w.check(w.Status().Update(t.Context(), &pod))
	}
	w.trims()
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources.Requests = cpu("20m") })
	q, events, shown := &enqueued{}, w.r.podEvents(), map[types.UID]*corev1.Pod{}
	began, due := w.now, w.now
	for tick := 0; w.deployment().Spec.Paused; tick++ {
		if w.now.Sub(began) > firstLook/2 {
			t.Fatalf("after %s: Progressing is %s", w.now.Sub(began), w.condition("web", "Progressing"))
		}
		for _, pod := range w.pods() {
			if tick%5 == 4 {
				w.resize(&pod)
			}
		}
		for _, pod := range w.pods() {
			before, after := shown[pod.UID], cachedPod(t, &pod)
			if shown[pod.UID] = after; before == nil || before.ResourceVersion == after.ResourceVersion {
				continue
			}
			if events.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q); len(q.take()) > 0 {
				due = earlier(due, w.now.Add(q.after))
			}
		}
		if !due.IsZero() && !w.now.Before(due) {
			due = time.Time{}
			if again := w.reconciled("web"); again > 0 {
				due = w.now.Add(again)
			}
		}
		w.now = w.now.Add(100 * time.Millisecond)
	}
	for _, pod := range w.pods() {
		if got := cachedPod(t, &pod).Spec.Containers[0].Resources.Requests.Cpu().String(); got != "20m" {
			t.Errorf("%s has %s", pod.Name, got)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
