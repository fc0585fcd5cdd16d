package configchange

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/rollout/configchange"
)

// kinds are the kinds of workloads that can have the annotation.
var kinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

// watch adds the event sources. Workloads, ConfigMaps and Secrets have a separate cache of their metadata alone, which
// the API server sends without the contents, and only on the elected replica.
func watch(mgr ctrl.Manager, c controller.TypedController[workload], r *reconciler) error {
	metadata, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: trim, NewInformer: guardcontrol.NewInformer(r.Guard),
	})
	if err != nil {
		return fmt.Errorf("make cache of metadata: %w", err)
	}
	if err := mgr.Add(metadata); err != nil {
		return fmt.Errorf("add cache of metadata: %w", err)
	}
	var sources []source.TypedSource[workload]
	for _, kind := range kinds {
		toItself := func(_ context.Context, object *metav1.PartialObjectMetadata) []workload {
			return []workload{{Kind: kind, NamespacedName: client.ObjectKeyFromObject(object)}}
		}
		sources = append(sources, source.TypedKind(metadata, partial(appsv1.SchemeGroupVersion.WithKind(kind)), handler.TypedEnqueueRequestsFromMapFunc(toItself), workloadChanged()))
	}
	contents := []string{configchange.ConfigMap}
	if r.Secrets {
		contents = append(contents, configchange.Secret)
	}
	for _, kind := range contents {
		toUsers := func(ctx context.Context, object *metav1.PartialObjectMetadata) []workload {
			return r.users(ctx, kind, object)
		}
		sources = append(sources, source.TypedKind(metadata, partial(corev1.SchemeGroupVersion.WithKind(kind)), handler.TypedEnqueueRequestsFromMapFunc(toUsers), notDeleted()))
	}
	sources = append(sources,
		source.TypedKind(mgr.GetCache(), &v1alpha1.RestartTrigger{}, handler.TypedEnqueueRequestsFromMapFunc(ofTrigger), found()),
		source.TypedKind(mgr.GetCache(), &v1alpha1.RestartRollout{}, handler.TypedEnqueueRequestsFromMapFunc(r.ofRollout), rolloutEnded()))
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	return nil
}

func partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// trim keeps what identifies objects and their versions, and the annotations of Refit.
func trim(object any) (any, error) {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("trim metadata: got %T", object)
	}
	trimmed := &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation,
	}}
	for _, key := range v1alpha1.RestartTriggerAnnotations() {
		if value, ok := o.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, key, value)
		}
	}
	return trimmed, nil
}

// workloadChanged passes on workloads with the annotation whose spec or annotations have changed, and those that have
// lost the annotation.
func workloadChanged() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	wants := func(o *metav1.PartialObjectMetadata) bool {
		_, ok := o.Annotations[v1alpha1.AnnotationRestartOnConfigChange]
		return ok
	}
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		CreateFunc: func(e event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return wants(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			// Of the annotations the cache has only those that matter.
			return wants(before) != wants(after) || wants(after) && (before.UID != after.UID || before.Generation != after.Generation ||
				!maps.Equal(before.Annotations, after.Annotations))
		},
		DeleteFunc: func(event.TypedDeleteEvent[*metav1.PartialObjectMetadata]) bool { return false },
	}
}

func notDeleted() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		DeleteFunc: func(event.TypedDeleteEvent[*metav1.PartialObjectMetadata]) bool { return false },
	}
}

// users returns the workloads whose triggers name the ConfigMap or Secret.
func (r *reconciler) users(ctx context.Context, kind string, object *metav1.PartialObjectMetadata) []workload {
	var list v1alpha1.RestartTriggerList
	if err := r.client.List(ctx, &list, client.InNamespace(object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		r.Logger.Error("list RestartTriggers", "namespace", object.Namespace, "err", err)
		return nil
	}
	var users []workload
	for i := range list.Items {
		if slices.ContainsFunc(list.Items[i].Status.Objects, func(o v1alpha1.ConfigObject) bool { return o.Kind == kind && o.Name == object.Name }) {
			users = append(users, ofTrigger(ctx, &list.Items[i])...)
		}
	}
	return users
}

func ofTrigger(_ context.Context, trigger *v1alpha1.RestartTrigger) []workload {
	ref := trigger.Spec.TargetRef
	return []workload{{Kind: ref.Kind, NamespacedName: types.NamespacedName{Namespace: trigger.Namespace, Name: ref.Name}}}
}

// ofRollout returns the workload whose trigger has to handle the end of a rollout.
func (r *reconciler) ofRollout(ctx context.Context, object *v1alpha1.RestartRollout) []workload {
	ref := object.Spec.TargetRef
	if ref == nil || ref.APIVersion != appsv1.SchemeGroupVersion.String() || !slices.Contains(kinds, ref.Kind) {
		return nil
	}
	key := types.NamespacedName{Namespace: object.Namespace, Name: configchange.TriggerName(ref.Kind, ref.Name)}
	var trigger v1alpha1.RestartTrigger
	if r.client.Get(ctx, key, &trigger) != nil {
		return nil
	}
	return ofTrigger(ctx, &trigger)
}

// found passes on triggers that exist when the manager starts, because their workloads may have lost the annotation
// before, triggers with new objects, because users did not return their workloads yet when the objects were read, and
// deleted triggers, because without them users does not return their workloads any more.
func found() predicate.TypedPredicate[*v1alpha1.RestartTrigger] {
	return predicate.TypedFuncs[*v1alpha1.RestartTrigger]{
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.RestartTrigger]) bool {
			return !slices.EqualFunc(e.ObjectOld.Status.Objects, e.ObjectNew.Status.Objects, func(a, b v1alpha1.ConfigObject) bool {
				return a.Kind == b.Kind && a.Name == b.Name
			})
		},
	}
}

func rolloutEnded() predicate.TypedPredicate[*v1alpha1.RestartRollout] {
	return predicate.TypedFuncs[*v1alpha1.RestartRollout]{
		CreateFunc: func(event.TypedCreateEvent[*v1alpha1.RestartRollout]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.RestartRollout]) bool {
			return e.ObjectOld.Status.CompletionTime == nil && e.ObjectNew.Status.CompletionTime != nil
		},
	}
}
