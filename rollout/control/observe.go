package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout"
)

var (
	// errNoTarget means that the workload of a rollout does not exist.
	errNoTarget = errors.New("the workload does not exist")
	// errUnreadable means that the selector of a rollout or of its workload is unreadable.
	errUnreadable = errors.New("the target cannot be read")
	// errDeleting means that the cache does not show yet that the rollout is being deleted.
	errDeleting = errors.New("the RestartRollout is being deleted")
	// errReplaced means that the cache still has an earlier rollout with this name, which may have had another workload.
	errReplaced = errors.New("the RestartRollout has been deleted and created again")
)

// target selects the pods of a rollout.
type target struct {
	workload *v1alpha1.WorkloadReference // nil for a rollout with a selector
	uid      string                      // of the workload
	replicas int32                       // of the workload
	minReady int32                       // spec.minReadySeconds of the workload
	selector labels.Selector
}

// observe reads the input of rollout.Next from the cache. It reads the workload from the API server, and the pods if the cache does
// not have the containers of one of them: what a RestartRollout alone needs of a pod is often small enough.
func (r *reconciler) observe(ctx context.Context, object *v1alpha1.RestartRollout) (rollout.Observation, target, error) {
	var observed rollout.Observation
	if rollout.Ended(object) {
		return observed, target{}, nil
	}
	of, err := r.target(ctx, object)
	if err != nil {
		if errors.Is(err, errNoTarget) {
			return rollout.Observation{TargetGone: true}, of, nil
		}
		if errors.Is(err, errUnreadable) {
			return rollout.Observation{Unreadable: err.Error()}, of, nil
		}
		return observed, of, err
	}
	observed.Replicas, observed.MinReadySeconds = of.replicas, of.minReady
	if observed.Budgets, err = budgets(ctx, r.client, object); err != nil {
		return observed, of, err
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, append(of.list(&observed), client.InNamespace(object.Namespace), client.UnsafeDisableDeepCopy)...); err != nil {
		return observed, of, fmt.Errorf("list pods: %w", err)
	}
	of.divide(pointers(pods.Items), &observed)
	if slices.ContainsFunc(observed.Pods, trim.TooLarge) {
		others := observed.Others
		read, err := r.livePods(ctx, object.Namespace, client.MatchingLabelsSelector{Selector: of.selector})
		if err != nil {
			return observed, of, err
		}
		of.divide(read, &observed)
		observed.Others = others
	}
	observed.Requests, err = r.requests(ctx, r.client, object.Namespace)
	return observed, of, err
}

// refresh reads from the API server what was observed from the cache. It reads PodDisruptionBudgets again if there are any.
func (r *reconciler) refresh(ctx context.Context, object *v1alpha1.RestartRollout, of target, observed *rollout.Observation) error {
	var live v1alpha1.RestartRollout // empty: fields that the response does not have would be kept from the cache
	switch err := r.live.Get(ctx, client.ObjectKeyFromObject(object), &live); {
	case err != nil:
		return fmt.Errorf("read RestartRollout: %w", err)
	case live.UID != object.UID:
		return errReplaced
	case live.DeletionTimestamp != nil:
		return errDeleting
	}
	*object = live
	var err error
	if observed.Requests, err = r.requests(ctx, r.live, object.Namespace); err != nil {
		return err
	}
	pods, err := r.livePods(ctx, object.Namespace, of.list(observed)...)
	if err != nil {
		return err
	}
	of.divide(pods, observed)
	// Read budgets after the pods: a restart that both show is subtracted twice, but a restart that neither shows would
	// not be subtracted at all.
	if len(observed.Budgets) > 0 && object.Spec.PodDisruptionBudgetPolicy != v1alpha1.PodDisruptionBudgetIgnore {
		observed.Budgets, err = budgets(ctx, r.live, object)
	}
	return err
}

// livePods reads pods of the namespace from the API server. After large ones the rollouts of the namespace wait.
func (r *reconciler) livePods(ctx context.Context, namespace string, options ...client.ListOption) ([]*corev1.Pod, error) {
	pods, excess, err := cache.LivePods(ctx, r.live, trimmer, append(options, client.InNamespace(namespace))...)
	if wait := r.reads.add(namespace, excess, r.Clock()); wait >= longWait {
		r.Logger.Info("RestartRollouts of a namespace wait because its pods are large", "namespace", namespace, "wait", wait.Round(time.Millisecond))
	}
	return pods, err
}

// terminating reports whether the namespace is being deleted. Kubernetes deletes the pods of a namespace first, so that a rollout
// has no pods left.
func (r *reconciler) terminating(ctx context.Context, name string) (bool, error) {
	var namespace corev1.Namespace
	if err := r.live.Get(ctx, client.ObjectKey{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// list returns the options to list pods of the namespace: all pods if there are PodDisruptionBudgets, which may also
// select other pods.
func (t target) list(observed *rollout.Observation) []client.ListOption {
	if len(observed.Budgets) > 0 {
		return nil
	}
	return []client.ListOption{client.MatchingLabelsSelector{Selector: t.selector}}
}

// divide separates the pods of the target from others. An empty selector matches no pod.
func (t target) divide(pods []*corev1.Pod, observed *rollout.Observation) {
	observed.Pods, observed.Others = nil, nil
	for _, pod := range pods {
		if !t.selector.Empty() && t.selector.Matches(labels.Set(pod.Labels)) && (t.workload == nil || rollout.Owns(t.workload, t.uid, pod)) {
			observed.Pods = append(observed.Pods, pod)
		} else {
			observed.Others = append(observed.Others, pod)
		}
	}
}

func budgets(ctx context.Context, reader client.Reader, object *v1alpha1.RestartRollout) ([]*policyv1.PodDisruptionBudget, error) {
	var list policyv1.PodDisruptionBudgetList
	if err := reader.List(ctx, &list, client.InNamespace(object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	return pointers(list.Items), nil
}

func pointers[T any](items []T) []*T {
	to := make([]*T, len(items))
	for i := range items {
		to[i] = &items[i]
	}
	return to
}

// target returns the selector of the rollout, or the selector and the UID of its workload.
func (r *reconciler) target(ctx context.Context, object *v1alpha1.RestartRollout) (target, error) {
	reference := object.Spec.TargetRef
	if reference == nil {
		selector, err := foreign.Selector(object.Spec.Selector)
		if err != nil {
			return target{}, fmt.Errorf("%w: selector of RestartRollout: %w", errUnreadable, err)
		}
		return target{selector: selector}, nil
	}
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind))
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: reference.Name}, workload); err != nil {
		if apierrors.IsNotFound(err) {
			return target{}, errNoTarget
		}
		if meta.IsNoMatchError(err) {
			return target{}, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		return target{}, fmt.Errorf("read %s %s: %w", reference.Kind, reference.Name, err)
	}
	selector, err := rollout.WorkloadSelector(workload)
	if err != nil {
		return target{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return target{
		workload: reference, uid: string(workload.GetUID()), selector: selector,
		replicas: rollout.WorkloadReplicas(workload), minReady: rollout.WorkloadMinReadySeconds(workload),
	}, nil
}

// requests returns the requests of the namespace, whoever has created them, and requests that were deleted while they were in
// progress. They are read from the cache, which may be behind, or from the API server.
func (r *reconciler) requests(ctx context.Context, from client.Reader, namespace string) ([]*v1beta1.ContainerRecreateRequest, error) {
	var list v1beta1.ContainerRecreateRequestList
	if err := from.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ContainerRecreateRequests: %w", err)
	}
	return append(r.deleted.Of(namespace, r.Clock()), pointers(list.Items)...), nil
}
