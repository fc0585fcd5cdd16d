package control

import (
	"context"
	"errors"
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
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/control/beside"
	"github.com/refit-project/refit/sidecarset/control/report"
	"github.com/refit-project/refit/sidecarset/missed"
)

// gather is how long to wait after a change of a pod for further changes before its SidecarSets are reconciled.
const gather = 200 * time.Millisecond

type queue = beside.Queue

// podEvents returns a handler that observes pods, one by one, and enqueues the affected SidecarSets.
func (r *reconciler) podEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.observeForAll(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			r.lastPodEvent.Store(r.Clock().UnixNano())
			r.observeForAll(ctx, e.ObjectNew, q)
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

// observeForAll observes a pod for all SidecarSets, and enqueues those whose state has changed.
func (r *reconciler) observeForAll(ctx context.Context, object client.Object, q queue) {
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

// requestEvents returns a handler that observes the pod of a request again, whoever has created the request.
func (r *reconciler) requestEvents() handler.EventHandler {
	return beside.On(beside.OnRequest(r.client, r.Logger, func(ctx context.Context, pod *corev1.Pod, q queue) {
		r.observeForAll(ctx, pod, q)
		r.enqueueHeld(pod.Namespace, q)
	}))
}

// disruptionEvents returns a handler that enqueues the SidecarSets blocked by a PodDisruptionBudget.
func (r *reconciler) disruptionEvents() handler.EventHandler {
	return beside.On(func(_ context.Context, object client.Object, q queue) { r.enqueueHeld(object.GetNamespace(), q) })
}

// enqueueHeld enqueues the SidecarSets that have a pod blocked by a PodDisruptionBudget of the namespace.
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

// observe observes a pod for a SidecarSet, if the SidecarSet selects it or has been injected into it. A pod that cannot
// be evaluated is recorded as such, so that no budget is computed without it. It does not affect other pods.
func (r *reconciler) observe(ctx context.Context, s *set, pod *corev1.Pod) (changed bool, err error) {
	selected := false
	err = r.Guard.Do("sidecarset", guard.Of(pod), func() (err error) {
		if selected, err = beside.Selects(ctx, r.client, s.selector, pod); err == nil {
			changed, err = r.judge(ctx, s, pod, selected)
		}
		return err
	})
	if guard.Is(err) {
		return (selected || s.knows(client.ObjectKeyFromObject(pod))) && s.unjudged(pod, err, r.Clock()), nil
	}
	return changed, err
}

func (r *reconciler) judge(ctx context.Context, s *set, pod *corev1.Pod, selected bool) (bool, error) {
	if !selected && !s.knows(client.ObjectKeyFromObject(pod)) && !slices.Contains(annotation.Names(pod), s.object.Name) {
		return false, nil
	}
	requests, err := beside.Requests(ctx, r.client, pod)
	if err != nil {
		return false, err
	}
	var why *missed.Pod
	if selected && !r.replaced(ctx, s, pod) {
		if why, err = beside.Missed(ctx, r.client, s.object, pod, requests, r.excluded(), r.Clock()); err != nil {
			return false, err
		}
	}
	return s.observe(pod, selected, why, requests, r.Clock()), nil
}

// replaced reports whether a canary was injected into the pod instead of the SidecarSet.
func (r *reconciler) replaced(ctx context.Context, s *set, pod *corev1.Pod) bool {
	for _, name := range annotation.Names(pod) {
		var other v1beta1.SidecarSet // from the cache: this manager may not have reconciled it yet
		err := r.client.Get(ctx, client.ObjectKey{Name: name}, &other, client.UnsafeDisableDeepCopy)
		if err == nil && other.Annotations[v1beta1.AnnotationSidecarSetCanary] == "true" && other.Annotations[v1beta1.AnnotationSidecarSetBase] == s.object.Name {
			return true
		}
	}
	return false
}

func (s *set) knows(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entry(key).known()
}

// subject returns a pod as the subject of a guard.
func (s *set) subject(key types.NamespacedName) guard.Subject {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, _ := s.fleet.Get(key)
	return guard.Of(report.Subject(key, pod.UID))
}

// remove removes a deleted pod, unless another pod has its name already.
func (s *set) remove(key types.NamespacedName, uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		s.gone[uid] = true
	}
	e := s.entry(key)
	if e.leaving != nil && e.leaving.UID == uid {
		e.leaving = nil
	}
	ended := e.ending != nil && e.ending.UID == uid
	if ended {
		e.ending = nil
	}
	if e.uid != "" && e.uid != uid {
		s.put(key, e)
		return ended
	}
	s.forget(key)
	return ended || e.known()
}

// namespaceEvents returns a handler that enqueues the SidecarSets that select by labels of namespaces, so that their
// pods are observed again.
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

// observeAll observes all cached pods for a SidecarSet.
func (r *reconciler) observeAll(ctx context.Context, s *set, options ...client.ListOption) error {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	var errs []error
	for i := range pods.Items {
		_, err := r.observe(ctx, s, &pods.Items[i])
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
