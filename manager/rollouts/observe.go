package rollouts

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout"
)

// errNoTarget means that the workload of a rollout does not exist.
var errNoTarget = errors.New("the workload does not exist")

// observe reads what rollout.Next decides from.
func (r *reconciler) observe(ctx context.Context, object *v1alpha1.RestartRollout) (rollout.Observation, error) {
	var observed rollout.Observation
	if object.Status.CompletionTime != nil {
		return observed, nil
	}
	var err error
	if observed.Pods, err = r.pods(ctx, object); err != nil {
		if errors.Is(err, errNoTarget) {
			return rollout.Observation{TargetGone: true}, nil
		}
		return observed, err
	}
	if observed.Requests, err = requests(ctx, r.client, object); err != nil {
		return observed, err
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := r.client.List(ctx, &budgets, client.InNamespace(object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return observed, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	for i := range budgets.Items {
		observed.Budgets = append(observed.Budgets, &budgets.Items[i])
	}
	return observed, nil
}

// pods are those of the workload or the selector.
func (r *reconciler) pods(ctx context.Context, object *v1alpha1.RestartRollout) ([]*corev1.Pod, error) {
	selector, uid, err := r.selector(ctx, object)
	if err != nil || selector.Empty() {
		return nil, err
	}
	var list corev1.PodList
	err = r.client.List(ctx, &list, client.InNamespace(object.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if target := object.Spec.TargetRef; target == nil || rollout.Owns(target, uid, &list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// selector is that of the rollout, or that of its workload with the workload's UID.
func (r *reconciler) selector(ctx context.Context, object *v1alpha1.RestartRollout) (labels.Selector, string, error) {
	target := object.Spec.TargetRef
	if target == nil {
		selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
		if err != nil {
			return labels.Nothing(), "", fmt.Errorf("selector of RestartRollout: %w", err)
		}
		return selector, "", nil
	}
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(schema.FromAPIVersionAndKind(target.APIVersion, target.Kind))
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: target.Name}, workload); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, "", errNoTarget
		}
		return nil, "", fmt.Errorf("read %s %s: %w", target.Kind, target.Name, err)
	}
	selector, err := rollout.WorkloadSelector(workload)
	if err != nil {
		return nil, "", err
	}
	return selector, string(workload.GetUID()), nil
}

// requests are those that the rollout has created.
func requests(ctx context.Context, reader client.Reader, object *v1alpha1.RestartRollout) ([]*v1beta1.ContainerRecreateRequest, error) {
	var list v1beta1.ContainerRecreateRequestList
	err := reader.List(ctx, &list, client.InNamespace(object.Namespace), client.MatchingLabels{v1alpha1.LabelRestartRollout: string(object.UID)})
	if err != nil {
		return nil, fmt.Errorf("list ContainerRecreateRequests: %w", err)
	}
	var own []*v1beta1.ContainerRecreateRequest
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], object) {
			own = append(own, &list.Items[i])
		}
	}
	return own, nil
}
