package workload

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/rollout/workload"
)

// maxEvent limits the text of an error in an Event, in bytes.
const maxEvent = 500

// actAll carries out the actions of a decision. A pod for which it fails does not stop the others.
func (r *reconciler) actAll(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, w *workload.Workload, decision *workload.Decision) error {
	var errs []error
	for i := range decision.Actions {
		a := &decision.Actions[i]
		if a.Pod == nil {
			errs = append(errs, r.actOnWorkload(ctx, policy, w, decision, a))
			continue
		}
		err := r.Guard.Do("inplaceupdatepolicy", guard.Of(a.Pod), func() error { return r.actOnPod(ctx, policy, decision, a) })
		if err == nil || apierrors.IsNotFound(err) || conflict.Is(err) || errors.Is(err, inplace.ErrChanged) {
			continue // the pod is read again at its next event
		}
		r.Recorder.Eventf(a.Pod, policy, corev1.EventTypeWarning, "InPlaceUpdateFailed", "Update", "InPlaceUpdatePolicy %s: %s", policy.Name, foreign.Shorten(err.Error(), maxEvent))
		errs = append(errs, fmt.Errorf("update pod %s: %w", a.Pod.Name, err))
	}
	return errors.Join(errs...)
}

func (r *reconciler) actOnPod(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision, a *workload.Action) error {
	switch a.Kind {
	case workload.ActionUpdate:
		return r.begin(ctx, policy, decision, a.Pod)
	case workload.ActionContinue:
		return r.proceed(ctx, policy, a.Pod)
	case workload.ActionWithdraw:
		return r.withdraw(ctx, policy, decision, a.Pod)
	case workload.ActionLabel:
		patch := map[string]any{"metadata": map[string]any{
			"uid": a.Pod.UID, "resourceVersion": a.Pod.ResourceVersion, "labels": map[string]string{appsv1.ControllerRevisionHashLabelKey: a.Label},
		}}
		err := r.client.Patch(ctx, named(&corev1.Pod{}, a.Pod.Namespace, a.Pod.Name), client.RawPatch(types.MergePatchType, must.JSON(patch)))
		return r.written("pods", "write revision of pod", err)
	case workload.ActionEvict:
		return r.podAPI().Evict(ctx, a.Pod)
	}
	return nil
}

// begin begins the update of a pod. If the first step drains the pod, the update is planned again at the next event.
func (r *reconciler) begin(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision, pod *corev1.Pod) error {
	options := plan.Options{Revision: decision.Status.UpdateRevision}
	if policy.Spec.DrainSeconds != nil {
		options.DrainSeconds = *policy.Spec.DrainSeconds
	}
	update, err := decision.Fields.Update(pod, options)
	if err != nil {
		return err
	}
	step, err := inplace.Start(pod, &update, r.Clock())
	if err != nil {
		return err
	}
	if _, err := inplace.Write(ctx, r.podAPI(), pod, step); err != nil {
		return err
	}
	r.Recorder.Eventf(pod, policy, corev1.EventTypeNormal, "InPlaceUpdate", "Update", "InPlaceUpdatePolicy %s: %s", policy.Name, step.Message)
	return nil
}

// proceed writes the next step of an update that has begun.
func (r *reconciler) proceed(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, pod *corev1.Pod) error {
	recorded, err := record.Read(pod)
	if err != nil || recorded == nil {
		return err
	}
	known, err := facts.Read(pod)
	if err != nil {
		known = nil // others may have written it
	}
	next := inplace.Next(pod, recorded, known, r.Clock())
	switch {
	case next.Kind != inplace.KindStep:
		return nil
	case next.Step.Kind == inplace.StepRestart:
		request := workload.RestartRequest(policy, pod, next.Step.Restart)
		return r.written("containerrecreaterequests", next.Step.Message, client.IgnoreAlreadyExists(r.client.Create(ctx, request)))
	}
	_, err = inplace.Write(ctx, r.podAPI(), pod, next.Step)
	return err
}

// withdraw takes back what an earlier update has not written to a pod, or else continues it.
func (r *reconciler) withdraw(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision, pod *corev1.Pod) error {
	recorded, err := record.Read(pod)
	if err != nil {
		return err
	}
	step, err := decision.Fields.Withdraw(pod, recorded, r.Clock())
	if err != nil {
		return err
	}
	if step == nil {
		return r.proceed(ctx, policy, pod)
	}
	_, err = inplace.Write(ctx, r.podAPI(), pod, step)
	return err
}

func (r *reconciler) actOnWorkload(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, w *workload.Workload, decision *workload.Decision, a *workload.Action) error {
	switch a.Kind {
	case workload.ActionKeepHistory, workload.ActionSetTemplate:
		return r.setTemplate(ctx, w, a.ReplicaSet)
	case workload.ActionPull:
		return r.pull(ctx, policy, decision, a.Job)
	case workload.ActionRelease:
		err := r.client.Patch(ctx, named(workload.NewObject(w.Kind), w.Namespace, w.Name), client.RawPatch(types.MergePatchType, must.JSON(w.Release())))
		if err == nil {
			r.Recorder.Eventf(policy, nil, corev1.EventTypeNormal, "Released", "Release", "%s %s is not held any more", w.Kind, w.Name)
		}
		return r.written("workloads", "release "+w.Kind, err)
	case workload.ActionUndo:
		return r.undo(ctx, w, a.Template)
	}
	return nil
}

// setTemplate writes the template of a ReplicaSet, or creates it with 0 replicas.
func (r *reconciler) setTemplate(ctx context.Context, w *workload.Workload, set *workload.ReplicaSet) error {
	if set.UID == "" {
		made := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: set.Name, Labels: set.Labels, Annotations: map[string]string{workload.AnnotationRevision: set.Revision},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&w.ObjectMeta, appsKind(w.Kind))},
		}}
		made.Spec = appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: w.Selector.DeepCopy(), Template: *set.Template}
		metav1.AddLabelToSelector(made.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey, set.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
		return r.written("replicasets", "create ReplicaSet "+set.Name, client.IgnoreAlreadyExists(r.client.Create(ctx, made)))
	}
	stored := &appsv1.ReplicaSet{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: set.Name}, stored); err != nil {
		return fmt.Errorf("read ReplicaSet %s: %w", set.Name, err)
	}
	if stored.ResourceVersion != set.ResourceVersion {
		return nil // it has changed; the next reconciliation decides again
	}
	stored.Spec.Template = *set.Template
	return r.written("replicasets", "write template of ReplicaSet "+set.Name, r.client.Update(ctx, stored))
}

// undo writes the former template to the workload.
func (r *reconciler) undo(ctx context.Context, w *workload.Workload, template *corev1.PodTemplateSpec) error {
	object := workload.NewObject(w.Kind)
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name}, object); err != nil {
		return fmt.Errorf("read %s %s: %w", w.Kind, w.Name, err)
	}
	if object.GetResourceVersion() != w.ResourceVersion {
		return nil
	}
	*workload.TemplateOf(object) = *template
	return r.written("workloads", "write former template of "+w.Kind, r.client.Update(ctx, object))
}

func named[O client.Object](object O, namespace, name string) O {
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}
