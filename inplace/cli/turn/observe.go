package turn

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/rollout/turn"
)

// look reads what a decision needs, after the last write of the process, and decides.
func (w *waiter) look(ctx context.Context) (turn.Decision, error) {
	var pods corev1.PodList
	if err := w.API.List(ctx, &pods, client.InNamespace(w.key.Namespace)); err != nil {
		return turn.Decision{}, fmt.Errorf("list pods: %w", err)
	}
	var requests v1beta1.ContainerRecreateRequestList
	if err := w.API.List(ctx, &requests, client.InNamespace(w.key.Namespace)); err != nil && !meta.IsNoMatchError(err) { // CRD not installed
		return turn.Decision{}, fmt.Errorf("list ContainerRecreateRequests: %w", err)
	}
	byPod := map[string][]*v1beta1.ContainerRecreateRequest{}
	for i := range requests.Items {
		name := requests.Items[i].Spec.PodName
		byPod[name] = append(byPod[name], &requests.Items[i])
	}
	observed, all, err := w.observe(pods.Items, byPod)
	if err != nil {
		return turn.Decision{}, err
	}
	if err := w.limit(ctx, pods.Items, &observed); err != nil {
		return turn.Decision{}, err
	}
	if !w.IgnorePodDisruptionBudgets {
		var budgets policyv1.PodDisruptionBudgetList
		if err := w.API.List(ctx, &budgets, client.InNamespace(w.key.Namespace)); err != nil {
			return turn.Decision{}, fmt.Errorf("list PodDisruptionBudgets: %w", err)
		}
		objects := make([]*policyv1.PodDisruptionBudget, len(budgets.Items))
		for i := range budgets.Items {
			objects[i] = &budgets.Items[i]
		}
		observed.Disruptions = func() *budget.Disruptions { return budget.NewDisruptions(objects, all) }
	}
	return turn.Next(observed), nil
}

// observe returns the pods of the same controller as budgets see them, and all pods of the namespace.
func (w *waiter) observe(pods []corev1.Pod, requests map[string][]*v1beta1.ContainerRecreateRequest) (o turn.Observation, all []budget.Pod, err error) {
	now, owner := w.Clock(), w.owner(pods)
	o.Own = -1
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		claim := budget.ClaimOn(pod, now)
		own := pod.UID == w.uid
		if own { // ignore our own claim
			switch {
			case w.forecasts:
				claim = &w.claim
			case claim != nil && claim.By != w.By:
				claim = nil
			}
			pod = pod.DeepCopy()
			delete(pod.Annotations, v1beta1.AnnotationDisruptionClaim)
		}
		p, _ := budget.Observe(pod, requests[pod.Name], 0, now)
		all = append(all, p)
		of := metav1.GetControllerOf(pod)
		switch {
		case own:
			o.Own = len(o.Pods)
		case owner == nil || of == nil || of.UID != owner.UID || pod.DeletionTimestamp != nil:
			continue
		}
		o.Pods = append(o.Pods, turn.Pod{Pod: p, Claim: claim})
	}
	if o.Own < 0 {
		return o, nil, fmt.Errorf("pod %s is gone", w.key.Name)
	}
	return o, all, nil
}

// owner returns the controller of the pod, or nil if it has none.
func (w *waiter) owner(pods []corev1.Pod) *metav1.OwnerReference {
	for i := range pods {
		if pods[i].UID == w.uid {
			return metav1.GetControllerOf(&pods[i])
		}
	}
	return nil
}

// limit sets how many pods may be unavailable, and how many pods the controller lacks, see [budget.New].
func (w *waiter) limit(ctx context.Context, pods []corev1.Pod, o *turn.Observation) error {
	size := len(o.Pods)
	if owner := w.owner(pods); owner != nil {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
		err := w.API.Get(ctx, client.ObjectKey{Namespace: w.key.Namespace, Name: owner.Name}, object)
		switch {
		case err == nil:
			size = cmp.Or(int(rollout.WorkloadReplicas(object)), size)
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err): // on these two errors only existing pods count
			return fmt.Errorf("read %s %s: %w", owner.Kind, owner.Name, err)
		}
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(&w.MaxUnavailable, size, false)
	if err != nil {
		return fmt.Errorf("--max-unavailable: %w", err)
	}
	o.Limit, o.Missing = max(limit, 1), size-len(o.Pods)
	return nil
}
