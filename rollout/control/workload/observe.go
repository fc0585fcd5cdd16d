package workload

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout/workload"
)

func appsKind(kind string) schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind(kind) }

// page is the number of objects that are read from the API server at a time.
const page = 100

// observe reads the input of workload.Next.
func (r *reconciler) observe(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy) (workload.Observation, error) {
	var observed workload.Observation
	var err error
	if observed.Older, err = r.older(ctx, policy); err != nil {
		return observed, err
	}
	var selector *metav1.LabelSelector
	var owners map[types.UID]bool
	observed.Workload, selector, owners, err = r.target(ctx, policy)
	if err != nil || observed.Workload == nil || observed.Older != "" {
		return observed, err
	}
	var requests v1beta1.ContainerRecreateRequestList
	if err := r.client.List(ctx, &requests, client.InNamespace(policy.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return observed, fmt.Errorf("list ContainerRecreateRequests: %w", err)
	}
	observed.Requests = pointers(requests.Items)
	var budgets policyv1.PodDisruptionBudgetList
	if err := r.client.List(ctx, &budgets, client.InNamespace(policy.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return observed, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	observed.Budgets = pointers(budgets.Items)
	return observed, r.pods(ctx, policy, selector, owners, &observed)
}

// older returns the name of an older policy of the same workload, or "".
func (r *reconciler) older(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy) (string, error) {
	var list v1alpha1.InPlaceUpdatePolicyList
	if err := r.client.List(ctx, &list, client.InNamespace(policy.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list InPlaceUpdatePolicies: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == policy.UID || other.Spec.TargetRef.Kind != policy.Spec.TargetRef.Kind || other.Spec.TargetRef.Name != policy.Spec.TargetRef.Name {
			continue
		}
		if created := other.CreationTimestamp; created.Before(&policy.CreationTimestamp) || created.Equal(&policy.CreationTimestamp) && other.Name < policy.Name {
			return other.Name, nil
		}
	}
	return "", nil
}

// target reads the workload with its revisions; nil if it does not exist. owners are the UIDs of the controllers of its
// pods.
func (r *reconciler) target(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy) (w *workload.Workload, selector *metav1.LabelSelector, owners map[types.UID]bool, err error) {
	key := client.ObjectKey{Namespace: policy.Namespace, Name: policy.Spec.TargetRef.Name}
	switch policy.Spec.TargetRef.Kind {
	case "Deployment":
		object, sets := &appsv1.Deployment{}, &appsv1.ReplicaSetList{}
		if err := r.read(ctx, key, object, sets, func() *metav1.LabelSelector { return object.Spec.Selector }); err != nil {
			return nil, nil, nil, client.IgnoreNotFound(err)
		}
		w = workload.FromDeployment(object, pointers(sets.Items))
		owners = map[types.UID]bool{}
		for _, set := range w.ReplicaSets {
			owners[set.UID] = true
		}
		return w, object.Spec.Selector, owners, nil
	case "StatefulSet":
		object, revisions := &appsv1.StatefulSet{}, &appsv1.ControllerRevisionList{}
		if err := r.read(ctx, key, object, revisions, func() *metav1.LabelSelector { return object.Spec.Selector }); err != nil {
			return nil, nil, nil, client.IgnoreNotFound(err)
		}
		w, err = workload.FromStatefulSet(object, pointers(revisions.Items))
		return w, object.Spec.Selector, map[types.UID]bool{object.UID: true}, err
	}
	object, revisions := &appsv1.DaemonSet{}, &appsv1.ControllerRevisionList{}
	if err := r.read(ctx, key, object, revisions, func() *metav1.LabelSelector { return object.Spec.Selector }); err != nil {
		return nil, nil, nil, client.IgnoreNotFound(err)
	}
	w, err = workload.FromDaemonSet(object, pointers(revisions.Items))
	return w, object.Spec.Selector, map[types.UID]bool{object.UID: true}, err
}

// read reads a workload, and its revisions, which have the labels of its selector.
func (r *reconciler) read(ctx context.Context, key client.ObjectKey, object client.Object, revisions client.ObjectList, selector func() *metav1.LabelSelector) error {
	if err := r.Live.Get(ctx, key, object); err != nil {
		return fmt.Errorf("read workload %s: %w", key, err)
	}
	selects, err := foreign.Selector(selector())
	if err != nil {
		return fmt.Errorf("read selector of workload %s: %w", key, err)
	}
	if err := r.Live.List(ctx, revisions, client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: selects}); err != nil {
		return fmt.Errorf("list revisions of workload %s: %w", key, err)
	}
	return nil
}

// pods reads the pods of the workload. While they may have to be updated, it reads them from the API server: the cache does
// not have all of their fields, and may be behind. Other pods are only needed if there are PodDisruptionBudgets.
func (r *reconciler) pods(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, selector *metav1.LabelSelector, owners map[types.UID]bool, observed *workload.Observation) error {
	selects, err := foreign.Selector(selector)
	if err != nil {
		return fmt.Errorf("read selector of workload: %w", err)
	}
	options := []client.ListOption{client.InNamespace(policy.Namespace), client.MatchingLabelsSelector{Selector: selects}}
	var pods []*corev1.Pod
	if idle(policy, observed.Workload) {
		pods, err = r.cachedPods(ctx, options)
	} else {
		pods, err = r.livePods(ctx, options)
	}
	if err != nil {
		return err
	}
	own := map[types.UID]bool{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owners[owner.UID] {
			observed.Pods, own[pod.UID] = append(observed.Pods, pod), true
		}
	}
	if len(observed.Budgets) == 0 {
		return nil
	}
	others, err := r.cachedPods(ctx, []client.ListOption{client.InNamespace(policy.Namespace)})
	for _, pod := range others {
		if !own[pod.UID] {
			observed.Others = append(observed.Others, pod)
		}
	}
	return err
}

// idle reports whether all pods had the present template before.
func idle(policy *v1alpha1.InPlaceUpdatePolicy, w *workload.Workload) bool {
	c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProgressing)
	return c != nil && c.Reason == v1alpha1.ReasonCompleted && policy.Status.Update == nil && policy.Status.ObservedTargetGeneration == w.Generation && !w.Held
}

func (r *reconciler) cachedPods(ctx context.Context, options []client.ListOption) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.client.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return pointers(list.Items), nil
}

func (r *reconciler) livePods(ctx context.Context, options []client.ListOption) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	for next := ""; ; {
		var list corev1.PodList
		if err := r.Live.List(ctx, &list, append(slices.Clone(options), client.Limit(page), client.Continue(next))...); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		pods = append(pods, pointers(list.Items)...)
		if next = list.Continue; next == "" {
			return pods, nil
		}
	}
}

func pointers[T any](items []T) []*T {
	to := make([]*T, len(items))
	for i := range items {
		to[i] = &items[i]
	}
	return to
}
