package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout/workload"
)

func appsKind(kind string) schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind(kind) }

// observe reads the input of workload.Next: the workload and its revisions from the API server, everything else from the cache.
// It does not read what is only needed before pods are taken out of service; see confirm.
func (r *reconciler) observe(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, s *state) (observed workload.Observation, of target, err error) {
	if observed.Older, err = r.older(ctx, policy); err != nil {
		return observed, of, err
	}
	of, err = r.target(ctx, policy)
	switch {
	case errors.Is(err, foreign.ErrUnreadable):
		observed.Unreadable, observed.Workload = err.Error(), of.unread
		return observed, of, nil
	case err != nil || of.workload == nil || observed.Older != "":
		observed.Workload = of.workload
		return observed, of, err
	}
	observed.Workload, observed.Memory, observed.Refused, observed.Since = of.workload, &s.memory, s.refusedPods, s.since
	observed.Unheld = r.unheld(ctx, policy)
	r.interest.own(client.ObjectKeyFromObject(policy), of.owners)
	if observed.Requests, err = r.cachedRequests(ctx, policy.Namespace); err != nil {
		return observed, of, err
	}
	pods, err := r.cachedPods(ctx, of.options(policy)...)
	if err != nil {
		return observed, of, err
	}
	observed.Pods = of.controlled(pods)
	if update := policy.Status.Update; update != nil && !enough(policy, observed.Pods, of.workload, update) {
		if err := r.readPods(ctx, policy, of, s, update, nil, &observed); err != nil {
			return observed, of, err
		}
	}
	observed.Pulls, err = r.pulls(ctx, policy, of.workload, observed.Pods)
	return observed, of, err
}

// confirm reads what a decision depends on that must not be outdated.
//
// The cache is believed if the watch of pods works and shows what this process has written: then a pod that has become
// unavailable meanwhile is not missing. Otherwise, as after an outage or a change of the leader, and for a decision about all
// pods, the pods are read from the API server. In an update of N pods that is needed a few times, and not for each pod.
//
// If look is set, nothing has happened for some time, and the pods are read from the API server in any case.
//
// PodDisruptionBudgets are read after pods and requests: an operation that both show is subtracted twice, but one that neither
// shows would not be subtracted at all.
func (r *reconciler) confirm(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, of target, s *state, decision *workload.Decision, observed *workload.Observation, look bool) (err error) {
	if observed.Requests, err = r.requests(ctx, policy.Namespace, observed.Requests); err != nil {
		return err
	}
	update := decision.Status.Update
	live := look || decision.Concludes(&policy.Status) || !r.believes(observed.Pods) || !enough(policy, observed.Pods, of.workload, update)
	if live {
		if err := r.readPods(ctx, policy, of, s, update, decision, observed); err != nil {
			return err
		}
		if observed.Pulls, err = r.pulls(ctx, policy, of.workload, observed.Pods); err != nil {
			return err
		}
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := r.Live.List(ctx, &budgets, client.InNamespace(policy.Namespace)); err != nil {
		return fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	observed.Budgets = pointers(budgets.Items)
	if len(observed.Budgets) == 0 || policy.Spec.PodDisruptionBudgetPolicy == v1alpha1.PodDisruptionBudgetIgnore {
		return nil
	}
	var others []*corev1.Pod
	if live {
		others, _, err = cache.LivePods(ctx, r.Live, trimmer, client.InNamespace(policy.Namespace))
	} else {
		others, err = r.cachedPods(ctx, client.InNamespace(policy.Namespace))
	}
	observed.Others = slices.DeleteFunc(others, of.owns)
	return err
}

// believes reports whether the cache of pods is considered up to date.
func (r *reconciler) believes(pods []*corev1.Pod) bool {
	now := r.Clock()
	return now.Sub(time.Unix(0, r.lastPodEvent.Load())) < believable && !r.written.late(pods, now)
}

// enough reports whether the cache has enough of all pods to compare them with the template of a workload.
func enough(policy *v1alpha1.InPlaceUpdatePolicy, pods []*corev1.Pod, w *workload.Workload, update *v1alpha1.TemplateUpdate) bool {
	return keepsValues(policy, w, update) && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return !workload.Comparable(pod) })
}

// keepsValues reports whether the cache keeps the annotations of an update. The pods of a workload whose template was undone may
// get another template than its own.
func keepsValues(policy *v1alpha1.InPlaceUpdatePolicy, w *workload.Workload, update *v1alpha1.TemplateUpdate) bool {
	if update == nil || len(update.Annotations) == 0 {
		return true
	}
	return policy.Status.UndoneRevision != w.Revision && !slices.ContainsFunc(update.Annotations, func(key string) bool { return !workload.KeepsValue(w.Template.Annotations[key]) })
}

// older returns the name of an older policy of the same workload, or "".
func (r *reconciler) older(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy) (string, error) {
	list, err := r.sameTarget(ctx, policy.Namespace, policy.Spec.TargetRef.Kind, policy.Spec.TargetRef.Name)
	if err != nil {
		return "", err
	}
	for i := range list {
		other := &list[i]
		if other.UID == policy.UID {
			continue
		}
		if created := other.CreationTimestamp; created.Before(&policy.CreationTimestamp) || created.Equal(&policy.CreationTimestamp) && other.Name < policy.Name {
			return other.Name, nil
		}
	}
	return "", nil
}

// target is a workload with what finds its pods; workload is nil if it does not exist.
type target struct {
	workload *workload.Workload
	unread   *workload.Workload // only its metadata and kind; nil if it does not exist
	selector labels.Selector
	owners   map[types.UID]bool // the controllers of its pods
}

// target reads the workload with its revisions.
func (r *reconciler) target(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy) (of target, err error) {
	object := workload.NewObject(policy.Spec.TargetRef.Kind)
	key := client.ObjectKey{Namespace: policy.Namespace, Name: policy.Spec.TargetRef.Name}
	if err := r.Live.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return of, nil
		}
		return of, fmt.Errorf("read workload %s: %w", key, err)
	}
	of.unread = unread(policy.Spec.TargetRef.Kind, object)
	if of.selector, err = foreign.Selector(workload.SelectorOf(object)); err != nil {
		return of, fmt.Errorf("selector of workload %s: %w", key, err)
	}
	of.owners = map[types.UID]bool{object.GetUID(): true}
	options := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: of.selector}}
	if policy.Spec.TargetRef.Kind == "Deployment" {
		var sets appsv1.ReplicaSetList
		if err := r.Live.List(ctx, &sets, options...); err != nil {
			return of, fmt.Errorf("list ReplicaSets: %w", err)
		}
		of.workload, err = workload.From(object, pointers(sets.Items), nil)
		if err == nil {
			for _, set := range of.workload.ReplicaSets {
				of.owners[set.UID] = true
			}
		}
		return of, err
	}
	var revisions appsv1.ControllerRevisionList
	if err := r.Live.List(ctx, &revisions, options...); err != nil {
		return of, fmt.Errorf("list ControllerRevisions: %w", err)
	}
	of.workload, err = workload.From(object, nil, pointers(revisions.Items))
	return of, err
}

// unread returns a workload without what may be out of bounds.
func unread(kind string, object metav1.Object) *workload.Workload {
	return &workload.Workload{Kind: kind, ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Labels: object.GetLabels(),
	}}
}

// owns reports whether the workload controls a pod.
func (t *target) owns(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && t.owners[owner.UID]
}

// controlled returns the pods that the workload controls.
func (t *target) controlled(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !t.owns(pod) })
}

// options select the pods of the workload, and others with its labels.
func (t *target) options(policy *v1alpha1.InPlaceUpdatePolicy) []client.ListOption {
	return []client.ListOption{client.InNamespace(policy.Namespace), client.MatchingLabelsSelector{Selector: t.selector}}
}

// cachedPods lists pods from the cache, as they are after the writes of this process.
func (r *reconciler) cachedPods(ctx context.Context, options ...client.ListOption) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.client.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := pointers(list.Items)
	r.written.newest(pods, r.Clock())
	return pods, nil
}

// readPods reads the pods of the workload from the API server. It keeps of a pod what the cache would, unless that is not enough to
// compare it, or the decision continues its update: then nothing must be missing that shows its progress.
func (r *reconciler) readPods(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, of target, s *state, update *v1alpha1.TemplateUpdate, decision *workload.Decision, observed *workload.Observation) error {
	s.memory = workload.Memory{} // it may have pods of which the cache does not have enough
	whole := !keepsValues(policy, of.workload, update)
	continued := decision.Continues()
	observed.Pods = nil
	for next := ""; ; {
		var list corev1.PodList
		if err := r.Live.List(ctx, &list, append(of.options(policy), client.Limit(cache.LivePage), client.Continue(next))...); err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		for _, pod := range of.controlled(pointers(list.Items)) {
			if !whole && !continued[pod.UID] {
				pod = trimmed(pod)
			}
			observed.Pods = append(observed.Pods, pod)
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// trimmed returns what the cache keeps of a pod, or the pod if that is not enough to compare it.
func trimmed(pod *corev1.Pod) *corev1.Pod {
	if small := trimmer.Of(pod); workload.Comparable(small) {
		return small
	}
	return pod
}

// cachedRequests returns the requests of the namespace from the cache, and deleted ones.
func (r *reconciler) cachedRequests(ctx context.Context, namespace string) ([]*v1beta1.ContainerRecreateRequest, error) {
	var list v1beta1.ContainerRecreateRequestList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ContainerRecreateRequests: %w", err)
	}
	return append(r.deleted.Of(namespace, r.Clock()), pointers(list.Items)...), nil
}

// requests replaces cached requests by the active ones from the API server, and adds those that the cache does not show.
func (r *reconciler) requests(ctx context.Context, namespace string, cached []*v1beta1.ContainerRecreateRequest) ([]*v1beta1.ContainerRecreateRequest, error) {
	active := map[types.UID]*v1beta1.ContainerRecreateRequest{}
	var list v1beta1.ContainerRecreateRequestList
	if err := r.Live.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1beta1.LabelActive: "true"}); err != nil {
		return nil, fmt.Errorf("list active ContainerRecreateRequests: %w", err)
	}
	for i := range list.Items {
		active[list.Items[i].UID] = &list.Items[i]
	}
	all := slices.DeleteFunc(slices.Clone(cached), func(request *v1beta1.ContainerRecreateRequest) bool { return active[request.UID] != nil })
	return slices.AppendSeq(all, maps.Values(active)), nil
}

func pointers[T any](items []T) []*T {
	to := make([]*T, len(items))
	for i := range items {
		to[i] = &items[i]
	}
	return to
}
