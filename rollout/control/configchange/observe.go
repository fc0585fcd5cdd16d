package configchange

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/rollout/configchange"
)

// workload names a Deployment, StatefulSet or DaemonSet.
type workload struct {
	Kind string
	types.NamespacedName
}

func (w workload) reference() v1alpha1.WorkloadReference {
	return v1alpha1.WorkloadReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: w.Kind, Name: w.Name}
}

// named returns the workload as the subject of a guard.
func named(_ context.Context, w workload) guard.Object {
	return guard.Object{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
}

// target is a workload as read from the API server.
type target struct {
	object   client.Object
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
}

// target reads a workload from the API server.
func (r *reconciler) target(ctx context.Context, key workload) (*target, error) {
	var t target
	switch key.Kind {
	case "Deployment":
		o := &appsv1.Deployment{}
		t.object, t.template = o, &o.Spec.Template
	case "StatefulSet":
		o := &appsv1.StatefulSet{}
		t.object, t.template = o, &o.Spec.Template
	default:
		o := &appsv1.DaemonSet{}
		t.object, t.template = o, &o.Spec.Template
	}
	if err := r.live.Get(ctx, key.NamespacedName, t.object); err != nil {
		return nil, fmt.Errorf("read %s: %w", key.Kind, err)
	}
	switch o := t.object.(type) {
	case *appsv1.Deployment:
		t.selector = o.Spec.Selector
	case *appsv1.StatefulSet:
		t.selector = o.Spec.Selector
	case *appsv1.DaemonSet:
		t.selector = o.Spec.Selector
	}
	return &t, nil
}

// trigger returns the trigger of the workload, and creates it if it does not exist. It reads it from the API server, so
// that it sees all earlier writes.
func (r *reconciler) trigger(ctx context.Context, key workload, owner client.Object) (*v1alpha1.RestartTrigger, error) {
	name := types.NamespacedName{Namespace: key.Namespace, Name: configchange.TriggerName(key.Kind, key.Name)}
	var found v1alpha1.RestartTrigger
	err := r.live.Get(ctx, name, &found)
	if err == nil && metav1.GetControllerOf(&found) == nil {
		// kubectl delete --cascade=orphan has left the trigger of an earlier workload with this name, and nothing else
		// deletes it.
		if err := r.forget(ctx, key); err != nil {
			return nil, err
		}
		return r.createTrigger(ctx, key, owner)
	}
	if err == nil && !metav1.IsControlledBy(&found, owner) {
		// The garbage collector deletes the trigger of an earlier workload with this name.
		return nil, fmt.Errorf("RestartTrigger %s is not of this %s", found.Name, key.Kind)
	}
	if err == nil || !apierrors.IsNotFound(err) {
		return &found, err
	}
	return r.createTrigger(ctx, key, owner)
}

func (r *reconciler) createTrigger(ctx context.Context, key workload, owner client.Object) (*v1alpha1.RestartTrigger, error) {
	created := &v1alpha1.RestartTrigger{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: configchange.TriggerName(key.Kind, key.Name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: key.Kind, Name: key.Name, UID: owner.GetUID(), Controller: new(true)}},
	}, Spec: v1alpha1.RestartTriggerSpec{TargetRef: key.reference()}}
	if err := r.client.Create(ctx, created); err != nil {
		return nil, fmt.Errorf("create RestartTrigger: %w", err)
	}
	return created, nil
}

// forget deletes the trigger of a workload that no longer has the annotation.
func (r *reconciler) forget(ctx context.Context, key workload) error {
	object := &v1alpha1.RestartTrigger{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: configchange.TriggerName(key.Kind, key.Name)}}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return client.IgnoreNotFound(err)
	}
	err := r.client.Delete(ctx, object, client.Preconditions{UID: &object.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

// objects reads the ConfigMaps and Secrets. It only computes digests for versions that are not in the trigger.
func (r *reconciler) objects(ctx context.Context, trigger *v1alpha1.RestartTrigger, references []configchange.Reference) ([]v1alpha1.ConfigObject, error) {
	known := map[v1alpha1.ConfigObject]string{}
	for _, object := range trigger.Status.Objects {
		key := object
		key.Digest, key.Immutable = "", false
		known[key] = object.Digest
	}
	var objects []v1alpha1.ConfigObject
	for _, reference := range references {
		object := v1alpha1.ConfigObject{Kind: reference.Kind, Name: reference.Name}
		key := client.ObjectKey{Namespace: trigger.Namespace, Name: reference.Name}
		var err error
		switch {
		case reference.Kind == configchange.ConfigMap:
			var of corev1.ConfigMap
			if err = r.live.Get(ctx, key, &of); err == nil {
				object.ResourceVersion = of.ResourceVersion
				object.Digest, object.Immutable = configchange.DigestConfigMap(&of), ptr.Deref(of.Immutable, false)
			}
		case !r.Secrets:
			continue
		default:
			var of corev1.Secret
			if err = r.live.Get(ctx, key, &of); err != nil {
				break
			}
			object.ResourceVersion = of.ResourceVersion
			if object.Digest = known[object]; object.Digest == "" {
				object.Digest, err = configchange.DigestSecret(&of, string(trigger.UID))
			}
			object.Immutable = ptr.Deref(of.Immutable, false)
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s: %w", reference.Kind, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// busy returns the name of an unfinished rollout of the workload, or "".
func (r *reconciler) busy(ctx context.Context, trigger *v1alpha1.RestartTrigger) (string, error) {
	var list v1alpha1.RestartRolloutList
	if err := r.client.List(ctx, &list, client.InNamespace(trigger.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list RestartRollouts: %w", err)
	}
	for i := range list.Items {
		if o := &list.Items[i]; o.Status.CompletionTime == nil && o.Spec.TargetRef != nil && *o.Spec.TargetRef == trigger.Spec.TargetRef {
			return o.Name, nil
		}
	}
	return "", nil
}

// refresh changes an annotation of the pods, so that kubelet updates their volumes. Without it, kubelet does so once
// per minute, and also when a container has ended, while it starts the next one, which may still see the old files. A
// pod whose annotation is refused, for example because its annotations are too large, is left out: otherwise its workload
// would never be restarted.
func (r *reconciler) refresh(ctx context.Context, trigger *v1alpha1.RestartTrigger, of *target, value string) error {
	selector, err := foreign.Selector(of.selector)
	if err != nil {
		return fmt.Errorf("selector of %s: %w", trigger.Spec.TargetRef.Name, err)
	}
	var pods corev1.PodList
	err = r.client.List(ctx, &pods, client.InNamespace(trigger.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationConfigRefresh, value)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || !rollout.Owns(&trigger.Spec.TargetRef, string(of.object.GetUID()), pod) {
			continue
		}
		err := r.client.Status().Patch(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, client.RawPatch(types.MergePatchType, patch))
		switch {
		case client.IgnoreNotFound(err) == nil:
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
			r.Logger.Warn("annotate pod", "pod", pod.Namespace+"/"+pod.Name, "err", err)
		default:
			return fmt.Errorf("annotate pod %s: %w", pod.Name, err)
		}
	}
	return nil
}
