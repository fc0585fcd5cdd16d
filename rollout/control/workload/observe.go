package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// page is the number of objects that are read from the API server at a time.
const page = 100

// observe reads the input of workload.Next. While pods may have to be updated, it reads from the API server: the cache does not
// have all fields of pods, and may be behind after an outage or a change of the leader. PodDisruptionBudgets are read after
// pods and requests: an operation that both show is subtracted twice, but one that neither shows would not be subtracted at all.
func (r *reconciler) observe(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy) (workload.Observation, error) {
	var observed workload.Observation
	var err error
	if observed.Older, err = r.older(ctx, policy); err != nil {
		return observed, err
	}
	target, err := r.target(ctx, policy)
	switch {
	case errors.Is(err, foreign.ErrUnreadable):
		observed.Unreadable = err.Error()
		return observed, nil
	case err != nil || target.workload == nil || observed.Older != "":
		observed.Workload = target.workload
		return observed, err
	}
	observed.Workload, observed.Unheld = target.workload, r.unheld(ctx, policy)
	from := r.Live
	if idle(policy, target.workload) {
		from = r.client
	}
	var requests v1beta1.ContainerRecreateRequestList
	if err := from.List(ctx, &requests, client.InNamespace(policy.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return observed, fmt.Errorf("list ContainerRecreateRequests: %w", err)
	}
	observed.Requests = append(r.deleted.Of(policy.Namespace, r.Clock()), pointers(requests.Items)...)
	if err := r.pods(ctx, policy, target, &observed); err != nil {
		return observed, err
	}
	if observed.Pulls, err = r.pulls(ctx, policy, target.workload); err != nil {
		return observed, err
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := from.List(ctx, &budgets, client.InNamespace(policy.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return observed, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	observed.Budgets = pointers(budgets.Items)
	if len(observed.Budgets) > 0 {
		observed.Others, err = r.others(ctx, policy, target, &observed)
	}
	return observed, err
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

// target is a workload with what finds its pods; workload is nil if it does not exist.
type target struct {
	workload *workload.Workload
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

// owns reports whether the workload controls a pod.
func (t *target) owns(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && t.owners[owner.UID]
}

// pods reads the pods of the workload.
func (r *reconciler) pods(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, of target, observed *workload.Observation) error {
	options := []client.ListOption{client.InNamespace(policy.Namespace), client.MatchingLabelsSelector{Selector: of.selector}}
	list := r.livePods
	if idle(policy, of.workload) {
		list = r.cachedPods
	}
	pods, err := list(ctx, options)
	observed.Pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !of.owns(pod) })
	return err
}

// others reads the other pods of the namespace.
func (r *reconciler) others(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, of target, observed *workload.Observation) (pods []*corev1.Pod, err error) {
	options := []client.ListOption{client.InNamespace(policy.Namespace)}
	if idle(policy, observed.Workload) {
		pods, err = r.cachedPods(ctx, options)
	} else {
		pods, err = cache.LivePods(ctx, r.Live, options...)
	}
	return slices.DeleteFunc(pods, of.owns), err
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
