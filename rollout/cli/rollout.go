package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/wording"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/cli/follow"
)

// rollout restarts containers of several pods.
func (r *restarter) rollout(ctx context.Context, target Target) error {
	pods, err := r.pods(ctx, target)
	if err != nil {
		return err
	}
	switch {
	case len(pods) == 0 && target.Workload != nil && r.replicas == 0: // like kubectl rollout restart, which accepts it
		r.Output.Say("%s has no pods: nothing to restart", target)
		return nil
	case len(pods) == 0 && target.Selector != nil:
		return fmt.Errorf("no pod in namespace %s matches --selector=%s", r.Namespace, metav1.FormatLabelSelector(target.Selector))
	case len(pods) == 0:
		return fmt.Errorf("%w: %s has no pods in namespace %s", ErrFailed, target, r.Namespace)
	}
	containers := r.Containers
	if len(containers) == 0 {
		if containers, err = only(pods[0]); err != nil {
			return err
		}
	}
	if err := errors.Join(checkContainers(target, pods, containers), checkDrain(r.DrainSeconds, pods...)); err != nil {
		return err
	}
	object := r.newRollout(target, containers)
	if err := r.create(ctx, object); err != nil {
		return err
	}
	if r.DryRun {
		if err := r.Made.Ended(r.API.Scheme(), object); err != nil {
			return err
		}
		return r.explain(ctx, object, pods)
	}
	r.Output.Say("RestartRollout %s: restart %s of %s of %s", object.Name, list(containers), wording.Count(len(pods), "pod", "pods"), target)
	if !r.Wait {
		return r.Made.Ended(r.API.Scheme(), object)
	}
	return console.Begun(r.followRollout(ctx, object))
}

func (r *restarter) newRollout(target Target, containers []string) *v1alpha1.RestartRollout {
	object := &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, GenerateName: "restart-", Annotations: r.annotations()}}
	if target.Workload != nil {
		object.GenerateName = generateName(target.Workload.Name)
	}
	object.Spec = v1alpha1.RestartRolloutSpec{
		TargetRef: target.Workload, Selector: target.Selector, Containers: v1alpha1.RolloutContainers(containers...),
		RolloutPace: v1alpha1.RolloutPace{
			MaxUnavailable: r.Rollout.MaxUnavailable, Partition: r.Rollout.Partition, MinReadySeconds: r.MinReadySeconds, DrainSeconds: r.DrainSeconds,
		},
		TTLSecondsAfterFinished: new(int32(requestTTL)),
		Pod:                     v1alpha1.PodRestart{TerminationGracePeriodSeconds: r.GracePeriodSeconds},
	}
	if r.Rollout.IgnorePodDisruptionBudgets {
		object.Spec.PodDisruptionBudgetPolicy = v1alpha1.PodDisruptionBudgetIgnore
	}
	if r.Rollout.ContinueOnFailure {
		object.Spec.FailurePolicy = v1alpha1.RolloutFailureContinue
	}
	return object
}

// pods returns the present pods of the target.
func (r *restarter) pods(ctx context.Context, target Target) ([]*corev1.Pod, error) {
	var selector labels.Selector
	var uid string
	if target.Workload != nil {
		workload := &unstructured.Unstructured{}
		workload.SetGroupVersionKind(schema.FromAPIVersionAndKind(target.Workload.APIVersion, target.Workload.Kind))
		if err := r.API.Get(ctx, r.key(target.Workload.Name), workload); err != nil {
			return nil, err
		}
		var err error
		if selector, err = rollout.WorkloadSelector(workload); err != nil {
			return nil, err
		}
		uid, r.replicas, r.workloadMinReady = string(workload.GetUID()), rollout.WorkloadReplicas(workload), rollout.WorkloadMinReadySeconds(workload)
	} else {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(target.Selector); err != nil {
			return nil, fmt.Errorf("%w: --selector: %w", console.ErrUsage, err)
		}
	}
	r.selector = selector
	var list corev1.PodList
	if err := r.API.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if target.Workload == nil || rollout.Owns(target.Workload, uid, &list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// explain prints what a rollout would do first, and what would block it.
func (r *restarter) explain(ctx context.Context, object *v1alpha1.RestartRollout, pods []*corev1.Pod) error {
	observed, err := r.observe(ctx, pods)
	if err != nil {
		return err
	}
	now := time.Now()
	object.CreationTimestamp = metav1.NewTime(now)
	decision := rollout.Next(object, observed, now)
	r.Output.Print("%s would be restarted, %s in each (dry run: admitted, and nothing done)\n", wording.Count(decision.Status.MatchedPods, "pod", "pods"), list(object.Spec.ContainerNames()))
	for _, request := range decision.Start {
		r.Output.Print("  at once: pod %s\n", request.Spec.PodName)
	}
	if c := meta.FindStatusCondition(decision.Status.Conditions, v1alpha1.ConditionProgressing); c != nil {
		r.Output.Print("  then: %s: %s\n", c.Reason, c.Message)
	}
	for _, failure := range decision.Status.Failures {
		r.Output.Print("  pod %s: %s: %s\n", failure.Pod, failure.Reason, failure.Message)
	}
	if failed := decision.Status.FailedPods; failed > 0 {
		return fmt.Errorf("%w: %d of %d pods would not be restarted", ErrFailed, failed, decision.Status.MatchedPods)
	}
	return nil
}

// observe reads the objects from which refit-manager would decide.
func (r *restarter) observe(ctx context.Context, pods []*corev1.Pod) (rollout.Observation, error) {
	observed := rollout.Observation{Pods: pods, Replicas: r.replicas, MinReadySeconds: r.workloadMinReady}
	var requests v1beta1.ContainerRecreateRequestList
	if err := r.API.List(ctx, &requests, client.InNamespace(r.Namespace)); err != nil {
		return observed, fmt.Errorf("list ContainerRecreateRequests: %w", err)
	}
	for i := range requests.Items {
		observed.Requests = append(observed.Requests, &requests.Items[i])
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := r.API.List(ctx, &budgets, client.InNamespace(r.Namespace)); err != nil {
		return observed, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	if len(budgets.Items) == 0 {
		return observed, nil
	}
	for i := range budgets.Items {
		observed.Budgets = append(observed.Budgets, &budgets.Items[i])
	}
	own := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		own[pod.UID] = true
	}
	var others corev1.PodList
	if err := r.API.List(ctx, &others, client.InNamespace(r.Namespace)); err != nil {
		return observed, fmt.Errorf("list pods: %w", err)
	}
	for i := range others.Items {
		if !own[others.Items[i].UID] {
			observed.Others = append(observed.Others, &others.Items[i])
		}
	}
	return observed, nil
}

// followRollout prints the progress of a rollout until it has ended.
func (r *restarter) followRollout(ctx context.Context, object *v1alpha1.RestartRollout) error {
	told := map[string]bool{}
	live := r.live(ctx, object)
	defer live.stop(ctx)
	silent, processed := console.Silent{Output: r.Output, Kind: "RestartRollouts", Feature: "restartRollouts"}, false
	object, err := follow.Object(ctx, r.API, &v1alpha1.RestartRolloutList{}, object, func(object *v1alpha1.RestartRollout) bool {
		status := &object.Status
		for _, failure := range status.Failures {
			if !told[failure.Pod] {
				told[failure.Pod] = true
				r.Output.Say("pod %s: %s: %s", failure.Pod, failure.Reason, failure.Message)
			}
		}
		if processed = status.ObservedGeneration > 0; processed {
			live.progress(progress(status)+held(status), status.CompletionTime != nil)
		}
		if command := continuation(object); command != "" && !told[command] {
			told[command] = true
			r.Output.Say("it does not continue by itself\n  %s", command)
		}
		return status.CompletionTime != nil
	}, func(err error) { silent.Tick(processed, err) })
	live.stop(ctx)
	if err := r.Made.Ended(r.API.Scheme(), object); err != nil {
		return err
	}
	if ctx.Err() != nil {
		of := " restartrollout/" + object.Name + " --namespace=" + r.Namespace
		if command := continuation(object); command != "" {
			return fmt.Errorf("%w; the restart waits\n  last:      %s\n  continue:  %s", console.Cause(ctx), r.Output.Last(), command)
		}
		return r.interrupted(ctx, r.Output.Last(), "kubectl refit rollout status"+of, "kubectl refit rollout pause"+of)
	}
	if err != nil {
		return err
	}
	end := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionSucceeded)
	if end == nil || end.Status != metav1.ConditionTrue {
		reason, message := "", ""
		if end != nil {
			reason, message = end.Reason, end.Message
		}
		return fmt.Errorf("%w: RestartRollout %s: %s: %s", ErrFailed, object.Name, reason, message)
	}
	r.Output.Say("%s", end.Message)
	return nil
}

// held returns what a rollout that has not ended waits for, apart from its own restarts.
func held(status *v1alpha1.RestartRolloutStatus) string {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case c == nil || status.CompletionTime != nil || c.Reason == v1alpha1.ReasonRestarting:
		return ""
	case c.Reason != v1alpha1.ReasonBudget:
		return ": " + c.Message
	case status.UnavailablePods > status.RestartingPods: // other pods than those that it is restarting
		return ": maxUnavailable is reached: " + c.Message
	}
	return ""
}

// bar returns a progress bar.
func bar(part, whole int32) string {
	const width = 20
	filled := 0
	if whole > 0 {
		filled = int(min(part, whole)) * width / int(whole)
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat("-", width-filled) + "]"
}
