package beside

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/rollout/budget"
)

// Budgets reads the PodDisruptionBudgets of namespaces for one decision.
//
// It evaluates all pods of a namespace that a budget selects, whether they have sidecars or not. It does so only if
// there are budgets, and only before a container is stopped.
type Budgets struct {
	cached client.Reader
	guard  *guard.Guard
	busy   func(*corev1.Pod) bool
	now    time.Time

	// Again is when to decide again.
	Again recheck.At
	// Err is the first error. If it is set, nothing may be begun.
	Err error
}

// NewBudgets returns Budgets that have read nothing yet. A pod that cannot be evaluated because of a panic counts as
// unavailable, and the guard reports it. busy reports whether an operation is in progress on a pod that the cache does
// not show yet.
func NewBudgets(cached client.Reader, g *guard.Guard, busy func(*corev1.Pod) bool, now time.Time) *Budgets {
	return &Budgets{cached: cached, guard: g, busy: busy, now: now}
}

// In returns what the PodDisruptionBudgets of a namespace allow, or nil if there are none.
func (b *Budgets) In(ctx context.Context, namespace string) *budget.Disruptions {
	disruptions, err := b.read(ctx, namespace)
	if b.Err == nil {
		b.Err = err
	}
	return disruptions
}

func (b *Budgets) read(ctx context.Context, namespace string) (*budget.Disruptions, error) {
	var list policyv1.PodDisruptionBudgetList
	if err := b.cached.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	objects := make([]*policyv1.PodDisruptionBudget, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
	}
	pods, err := b.selected(ctx, namespace, objects)
	if err != nil {
		return nil, err
	}
	return budget.NewDisruptions(objects, pods), nil
}

// selected returns the pods that one of the budgets selects.
func (b *Budgets) selected(ctx context.Context, namespace string, objects []*policyv1.PodDisruptionBudget) (pods []budget.Pod, err error) {
	var list corev1.PodList
	if err := b.cached.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	all, err := requests(ctx, b.cached, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	byPod := map[string][]*v1beta1.ContainerRecreateRequest{}
	for _, request := range all {
		byPod[request.Spec.PodName] = append(byPod[request.Spec.PodName], request)
	}
	of := selectors(objects)
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || !anyMatches(of, pod) {
			continue
		}
		pods = append(pods, b.observe(pod, byPod[pod.Name]))
	}
	return pods, nil
}

func (b *Budgets) observe(pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest) (seen budget.Pod) {
	judged := b.guard.Try("sidecarset", guard.Of(pod), func() {
		var again recheck.At
		seen, again = budget.Observe(pod, requests, 0, b.now)
		if seen.UnderWay {
			b.Again = b.Again.Or(again.Time)
		}
		seen.UnderWay = seen.UnderWay || b.busy(pod)
	})
	if !judged {
		return budget.Pod{Name: pod.Name, Labels: pod.Labels}
	}
	return seen
}

func selectors(objects []*policyv1.PodDisruptionBudget) (of []labels.Selector) {
	for _, object := range objects {
		selector, _ := budget.Selector(object)
		of = append(of, selector)
	}
	return of
}

func anyMatches(selectors []labels.Selector, pod *corev1.Pod) bool {
	for _, selector := range selectors {
		if selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}
