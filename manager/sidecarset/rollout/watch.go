package rollout

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/manager/sidecarset/beside"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/missed"
)

// gather is how long a change of a pod waits for others before its SidecarSets are reconciled.
const gather = 200 * time.Millisecond

type queue = beside.Queue

// podEvents take pods in, one by one, and enqueue the SidecarSets for which something has changed.
func (r *reconciler) podEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.take(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			r.heard.Store(r.Clock().UnixNano())
			r.take(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			key := client.ObjectKeyFromObject(e.Object)
			for _, s := range r.all() {
				if s.remove(key, e.Object.GetUID()) {
					enqueue(q, s.object.Name)
				}
			}
		},
	}
}

// take shows a pod to all SidecarSets, and enqueues those for which something has changed.
func (r *reconciler) take(ctx context.Context, object client.Object, q queue) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	for _, s := range r.all() {
		if changed, err := r.observe(ctx, s, pod); err != nil {
			r.Logger.Error("pod not observed", "pod", client.ObjectKeyFromObject(pod).String(), "err", err)
		} else if changed {
			enqueue(q, s.object.Name)
		}
	}
}

// requestEvents look again at the pod of a request, whoever has created it.
func (r *reconciler) requestEvents() handler.EventHandler {
	return beside.On(beside.OnRequest(r.client, r.Logger, func(ctx context.Context, pod *corev1.Pod, q queue) {
		r.take(ctx, pod, q)
		r.enqueueHeld(pod.Namespace, q)
	}))
}

// disruptionEvents enqueue the SidecarSets that a PodDisruptionBudget holds.
func (r *reconciler) disruptionEvents() handler.EventHandler {
	return beside.On(func(_ context.Context, object client.Object, q queue) { r.enqueueHeld(object.GetNamespace(), q) })
}

// enqueueHeld enqueues the SidecarSets of which a PodDisruptionBudget of the namespace holds a pod.
func (r *reconciler) enqueueHeld(namespace string, q queue) {
	for _, s := range r.all() {
		s.mu.Lock()
		held := strings.HasPrefix(s.disruption, namespace+"/")
		s.mu.Unlock()
		if held {
			enqueue(q, s.object.Name)
		}
	}
}

func enqueue(q queue, name string) {
	q.AddAfter(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}, gather)
}

// observe shows a pod to a SidecarSet, if it selects the pod or has been injected into it.
func (r *reconciler) observe(ctx context.Context, s *set, pod *corev1.Pod) (bool, error) {
	selected := s.selector.Pod(pod.Labels)
	if selected {
		var labels map[string]string
		if s.selector.NeedsNamespace() {
			var err error
			if labels, err = beside.NamespaceLabels(ctx, r.client, pod.Namespace); err != nil {
				return false, err
			}
		}
		selected = s.selector.Namespace(pod.Namespace, labels)
	}
	if !selected && !s.knows(client.ObjectKeyFromObject(pod)) && !slices.Contains(annotation.Names(pod), s.object.Name) {
		return false, nil
	}
	requests, err := beside.Requests(ctx, r.client, pod)
	if err != nil {
		return false, err
	}
	var why *missed.Pod
	if selected && !r.replaced(s, pod) {
		if why, err = r.missed(ctx, s, pod, requests); err != nil {
			return false, err
		}
	}
	return s.observe(pod, selected, why, requests, r.Clock()), nil
}

// replaced reports whether a canary of the SidecarSet was injected into the pod in its place.
func (r *reconciler) replaced(s *set, pod *corev1.Pod) bool {
	for _, name := range annotation.Names(pod) {
		if other := r.find(name); other != nil && other.object.Annotations[v1beta1.AnnotationSidecarSetCanary] == "true" &&
			other.object.Annotations[v1beta1.AnnotationSidecarSetBase] == s.object.Name {
			return true
		}
	}
	return false
}

func (s *set) knows(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[key] != nil || s.notInjected[key].Reason != ""
}

// remove drops a pod that is gone, unless another of its name has come.
func (s *set) remove(key types.NamespacedName, uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		s.gone[uid] = true
	}
	if s.leaving[key] != nil && s.leaving[key].UID == uid {
		delete(s.leaving, key)
	}
	ended := s.ending[key] == uid
	if ended {
		delete(s.ending, key)
	}
	if k := s.known[key]; k != nil && k.uid != uid {
		return ended
	}
	had := ended || s.known[key] != nil || s.notInjected[key].Reason != ""
	s.forget(key)
	return had
}

// namespaceEvents enqueue the SidecarSets that select by labels of namespaces, whose pods are then looked at again.
func (r *reconciler) namespaceEvents() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
		before, after := e.ObjectOld, e.ObjectNew
		for _, s := range r.all() {
			if s.selector.Namespace(before.GetName(), before.GetLabels()) == s.selector.Namespace(after.GetName(), after.GetLabels()) {
				continue
			}
			if err := r.observeAll(ctx, s, client.InNamespace(after.GetName())); err != nil {
				r.Logger.Error("pods of a namespace not observed", "namespace", after.GetName(), "err", err)
			}
			enqueue(q, s.object.Name)
		}
	}}
}

// observeAll shows all cached pods to a SidecarSet.
func (r *reconciler) observeAll(ctx context.Context, s *set, options ...client.ListOption) error {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	for i := range pods.Items {
		if _, err := r.observe(ctx, s, &pods.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
