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
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/rollout/workload"
)

// maxEvent limits the text of an error in an Event, in bytes.
const maxEvent = 500

// actAll carries out the actions of a decision. If the action for one pod fails, it continues with the others. It reports whether
// anything was written or has to be retried.
func (r *reconciler) actAll(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, w *workload.Workload, decision *workload.Decision) (acted bool, _ error) {
	var errs []error
	for i := range decision.Actions {
		a := &decision.Actions[i]
		if a.Pod == nil {
			acted = true
			errs = append(errs, r.actOnWorkload(ctx, policy, w, decision, a))
			continue
		}
		var did bool
		err := r.Guard.Do("inplaceupdatepolicy", guard.Of(a.Pod), func() (err error) {
			did, err = r.actOnPod(ctx, policy, decision, a)
			return err
		})
		acted = acted || did || err != nil
		if err == nil || apierrors.IsNotFound(err) || conflict.Is(err) || errors.Is(err, inplace.ErrChanged) {
			continue // the pod is read again at its next event
		}
		r.Recorder.Eventf(a.Pod, policy, corev1.EventTypeWarning, "InPlaceUpdateFailed", "Update", "InPlaceUpdatePolicy %s: %s", policy.Name, foreign.Shorten(err.Error(), maxEvent))
		errs = append(errs, fmt.Errorf("update pod %s: %w", a.Pod.Name, err))
	}
	return acted, errors.Join(errs...)
}

// actOnPod reports whether it has written something. The pod of the action may be outdated and incomplete: what is written is
// decided again with the pod in the API server.
func (r *reconciler) actOnPod(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision, a *workload.Action) (bool, error) {
	switch a.Kind {
	case workload.ActionLabel:
		patch := map[string]any{"metadata": map[string]any{
			"uid": a.Pod.UID, "resourceVersion": a.Pod.ResourceVersion, "labels": map[string]string{appsv1.ControllerRevisionHashLabelKey: a.Label},
		}}
		stored := named(&corev1.Pod{}, a.Pod.Namespace, a.Pod.Name)
		err := r.client.Patch(ctx, stored, client.RawPatch(types.MergePatchType, must.JSON(patch)))
		return true, r.stored(stored, r.wrote("pods", "write revision of pod", err))
	case workload.ActionEvict:
		return true, r.podAPI().Evict(ctx, a.Pod)
	case workload.ActionContinue:
		if step := r.next(a.Pod); step == nil || r.requested(ctx, policy, a.Pod, step) {
			return false, nil
		}
	}
	pod, err := r.podAPI().Pod(ctx, a.Pod.Namespace, a.Pod.Name)
	if err != nil {
		return false, err
	}
	if pod.UID != a.Pod.UID || pod.DeletionTimestamp != nil {
		return false, nil // its workload has replaced it
	}
	switch a.Kind {
	case workload.ActionUpdate:
		return true, r.begin(ctx, policy, decision, pod)
	case workload.ActionContinue:
		return r.proceed(ctx, policy, pod)
	case workload.ActionWithdraw:
		return r.withdraw(ctx, policy, decision, pod)
	}
	return false, nil
}

// stored keeps a pod as it is after a write, until the cache shows it.
func (r *reconciler) stored(pod *corev1.Pod, err error) error {
	if err == nil {
		r.written.add(pod, r.Clock())
	}
	return err
}

// write writes a step of an update.
func (r *reconciler) write(ctx context.Context, pod *corev1.Pod, step *inplace.Step) (*corev1.Pod, error) {
	stored, err := inplace.Write(ctx, r.podAPI(), pod, step)
	return stored, r.stored(stored, err)
}

// begin begins the update of a pod. If the first step drains the pod, the update is planned again with the drained pod. Nothing is
// written for an update that the API server refuses.
func (r *reconciler) begin(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision, pod *corev1.Pod) error {
	uid, revision := pod.UID, decision.Status.UpdateRevision
	options := plan.Options{Revision: revision}
	if policy.Spec.DrainSeconds != nil {
		options.DrainSeconds = *policy.Spec.DrainSeconds
	}
	for drained := false; ; drained = true {
		if decision.Fields.Has(pod) {
			return nil // the cache did not show it
		}
		update, err := decision.Fields.Update(pod, options)
		if err != nil {
			return err
		}
		step, err := inplace.Start(pod, &update, r.Clock())
		if err != nil {
			return err
		}
		if step.Kind != inplace.StepWrite && !drained { // the first step changes nothing that could be refused
			if err := r.try(ctx, pod, &update); err != nil {
				return r.noteRefused(policy, uid, revision, err)
			}
		}
		if pod, err = r.write(ctx, pod, step); err != nil {
			return r.noteRefused(policy, uid, revision, err)
		}
		if step.Kind != inplace.StepDrain || drained {
			r.Recorder.Eventf(pod, policy, corev1.EventTypeNormal, "InPlaceUpdate", "Update", "InPlaceUpdatePolicy %s: %s", policy.Name, step.Message)
			_, err := r.proceed(ctx, policy, pod)
			return err
		}
	}
}

// next returns the next step of an update that has begun; nil if there is none now.
func (r *reconciler) next(pod *corev1.Pod) *inplace.Step {
	recorded, err := record.Read(pod)
	if err != nil || recorded == nil {
		return nil
	}
	known, err := reported.Read(pod)
	if err != nil {
		known = nil // others may have written it
	}
	next := inplace.Next(pod, recorded, known, r.Clock())
	if next.Kind != inplace.KindStep {
		return nil
	}
	return next.Step
}

// requested reports whether the cache shows the request of a step that restarts a container: the update continues at its end.
func (r *reconciler) requested(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, pod *corev1.Pod, step *inplace.Step) bool {
	if step.Kind != inplace.StepRestart {
		return false
	}
	request := workload.RestartRequest(policy, pod, step.Restart)
	return r.client.Get(ctx, client.ObjectKeyFromObject(request), &v1beta1.ContainerRecreateRequest{}, client.UnsafeDisableDeepCopy) == nil
}

// stepsAtOnce limits the steps that are written for one pod before other pods are handled.
const stepsAtOnce = 4

// proceed continues an update: it writes the next steps until one has to wait, or creates the request for a restart. It reports
// whether it has written something.
func (r *reconciler) proceed(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, pod *corev1.Pod) (did bool, err error) {
	for range stepsAtOnce {
		step := r.next(pod)
		switch {
		case step == nil:
			return did, nil
		case step.Kind == inplace.StepRestart:
			request := workload.RestartRequest(policy, pod, step.Restart)
			err := r.client.Create(ctx, request)
			return did || !apierrors.IsAlreadyExists(err), r.wrote("containerrecreaterequests", step.Message, client.IgnoreAlreadyExists(err))
		}
		did = true
		if pod, err = r.write(ctx, pod, step); err != nil {
			return true, err
		}
	}
	return did, nil
}

// withdraw takes back what an earlier update has not written to a pod, or else continues it.
func (r *reconciler) withdraw(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision, pod *corev1.Pod) (bool, error) {
	recorded, err := record.Read(pod)
	if err != nil {
		return false, err
	}
	step, err := decision.Fields.Withdraw(pod, recorded, r.Clock())
	if err != nil {
		return false, err
	}
	if step == nil {
		return r.proceed(ctx, policy, pod)
	}
	_, err = r.write(ctx, pod, step)
	return true, err
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
		return r.wrote("workloads", "release "+w.Kind, err)
	case workload.ActionHoldLabel:
		err := r.client.Patch(ctx, named(workload.NewObject(w.Kind), w.Namespace, w.Name), client.RawPatch(types.MergePatchType, must.JSON(w.HoldLabel(a.Label))))
		return r.wrote("workloads", "write label "+v1alpha1.LabelHoldUID+" of "+w.Kind, client.IgnoreNotFound(err))
	case workload.ActionUndo:
		return r.undo(ctx, w, a.Template)
	}
	return nil
}

// setTemplate writes the template of a ReplicaSet, or creates it with 0 replicas.
func (r *reconciler) setTemplate(ctx context.Context, w *workload.Workload, set *workload.ReplicaSet) error {
	if set.UID == "" {
		made := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: set.Name, Labels: set.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&w.ObjectMeta, appsKind(w.Kind))},
		}}
		made.Spec = appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: w.Selector.DeepCopy(), Template: *set.Template}
		annotate(made, set)
		metav1.AddLabelToSelector(made.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey, set.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
		return r.wrote("replicasets", "create ReplicaSet "+set.Name, client.IgnoreAlreadyExists(r.client.Create(ctx, made)))
	}
	stored := &appsv1.ReplicaSet{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: set.Name}, stored); err != nil {
		return fmt.Errorf("read ReplicaSet %s: %w", set.Name, err)
	}
	if stored.ResourceVersion != set.ResourceVersion {
		return nil // it has changed; the next reconciliation decides again
	}
	stored.Spec.Template = *set.Template
	if set.Revision != "" {
		annotate(stored, set)
	}
	return r.wrote("replicasets", "write template of ReplicaSet "+set.Name, r.client.Update(ctx, stored))
}

// annotate sets what kubectl rollout history shows of a former template.
func annotate(to *appsv1.ReplicaSet, set *workload.ReplicaSet) {
	metav1.SetMetaDataAnnotation(&to.ObjectMeta, workload.AnnotationRevision, set.Revision)
	delete(to.Annotations, workload.AnnotationChangeCause)
	if set.ChangeCause != "" {
		to.Annotations[workload.AnnotationChangeCause] = set.ChangeCause
	}
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
	workload.WriteFormer(object, template)
	return r.wrote("workloads", "write former template of "+w.Kind, r.client.Update(ctx, object))
}

func named[O client.Object](object O, namespace, name string) O {
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}
