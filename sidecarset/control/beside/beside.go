// Package beside reads from the manager's cache what a rollout needs beside the pods of a SidecarSet: namespaces,
// restart requests, and what PodDisruptionBudgets allow. Packages sidecarset/rollout and rollout/budget decide what
// follows from it.
package beside

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/refit-project/refit/api/v1beta1"
)

// RequestsByPod is the index of cached ContainerRecreateRequests by the name of their pod.
const RequestsByPod = "spec.podName"

// Index adds the index. It must be called once, before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, RequestsByPod, PodOfRequest); err != nil {
		return fmt.Errorf("index ContainerRecreateRequests by pod: %w", err)
	}
	return nil
}

// PodOfRequest returns the name of the pod of a request, for the index.
func PodOfRequest(object client.Object) []string {
	if request, ok := object.(*v1beta1.ContainerRecreateRequest); ok && request.Spec.PodName != "" {
		return []string{request.Spec.PodName}
	}
	return nil
}

// Requests returns the requests for the pod, or for an earlier pod with its name, whoever has created them.
func Requests(ctx context.Context, cached client.Reader, pod *corev1.Pod) ([]*v1beta1.ContainerRecreateRequest, error) {
	return requests(ctx, cached, client.InNamespace(pod.Namespace), client.MatchingFields{RequestsByPod: pod.Name})
}

func requests(ctx context.Context, cached client.Reader, options ...client.ListOption) ([]*v1beta1.ContainerRecreateRequest, error) {
	var list v1beta1.ContainerRecreateRequestList
	if err := cached.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list ContainerRecreateRequests: %w", err)
	}
	all := make([]*v1beta1.ContainerRecreateRequest, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// NamespaceLabels returns the labels of a namespace; they are empty if it does not exist.
func NamespaceLabels(ctx context.Context, cached client.Reader, name string) (map[string]string, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := cached.Get(ctx, client.ObjectKey{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return namespace.Labels, nil
}

// Queue is the queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// On returns an event handler that calls look for all events of an object.
func On(look func(context.Context, client.Object, Queue)) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) { look(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) { look(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q Queue) { look(ctx, e.Object, q) },
	}
}

// OnRequest returns a handler for events of requests. It calls look with the pod of the request from the cache, and
// does nothing if there is no such pod.
func OnRequest[Q any](cached client.Reader, logger *slog.Logger, look func(context.Context, *corev1.Pod, Q)) func(context.Context, client.Object, Q) {
	return func(ctx context.Context, object client.Object, q Q) {
		request, ok := object.(*v1beta1.ContainerRecreateRequest)
		if !ok {
			return
		}
		var pod corev1.Pod
		key := client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}
		switch err := cached.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy); {
		case err == nil:
			look(ctx, &pod, q)
		case !apierrors.IsNotFound(err):
			logger.Error("pod of a request not read", "pod", key.String(), "err", err)
		}
	}
}

// SpecChanged ignores updates of the status, and of annotations and labels except the label that names a version.
func SpecChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
}
