package control

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/refit-project/refit/api/v1alpha1"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/probe/podprobe"
)

const (
	// podInterval is the minimum time between two writes to a pod.
	podInterval = 100 * time.Millisecond
	// podFirstRetry and podLastRetry are the first and the longest delay after failed writes to a pod.
	podFirstRetry = 200 * time.Millisecond
	podLastRetry  = 30 * time.Second
	// podResync is the interval at which each pod is compared with its results. It costs no request, or one read if the pod is too
	// large for the cache; refused fields are tried again.
	podResync = 10 * time.Minute
)

// addPods adds the controller that watches for changes that affect the labels, annotations and conditions of pods, and
// the Writer that applies them.
func addPods(mgr ctrl.Manager, cfg Config, a *api) error {
	r := newPodReconciler(a, cfg.Workers)
	a.rewrite = r.writer.Request
	// A RunnableFunc only runs on the leader, like the controllers.
	if err := mgr.Add(manager.RunnableFunc(r.writer.Run)); err != nil {
		return fmt.Errorf("add writer: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("podprobe-pod").
		Watches(&corev1.Pod{}, enqueue(0, r.changedPod)).
		Watches(&v1alpha1.NodePodProbe{}, enqueue(0, r.podsWithNewResults)).
		Watches(&v1alpha1.PodProbeMarker{}, enqueue(0, r.podsOfMarker), builder.WithPredicates(markerChanged())).
		WithOptions(controller.Options{NewQueue: faircontrol.Queue}).
		Complete(r)
}

// podReconciler requests a write for each pod that is affected by a watch event.
type podReconciler struct {
	*api
	destination *podDestination
	writer      *result.Writer[types.NamespacedName]
}

func newPodReconciler(a *api, workers int) *podReconciler {
	d := newPodDestination(a)
	return &podReconciler{api: a, destination: d, writer: result.NewWriter(result.Config[types.NamespacedName]{
		Destination: d, Workers: workers, Guard: a.guard, Logger: a.log, Share: func(pod types.NamespacedName) string { return pod.Namespace },
		Pace: result.Pace{Interval: podInterval, FirstRetry: podFirstRetry, LastRetry: podLastRetry, Resync: podResync},
	})}
}

// Reconcile implements reconcile.Reconciler. The Writer decides when and how often a pod is written.
func (r *podReconciler) Reconcile(_ context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.writer.Request(request.NamespacedName)
	return ctrl.Result{}, nil
}

// changedPod returns the pod if the change affects its probe results, or fields that Refit has applied.
func (r *podReconciler) changedPod(_ context.Context, before, after client.Object) []ctrl.Request {
	was, is := asPod(before), asPod(after)
	if is == nil {
		r.writer.Forget(client.ObjectKeyFromObject(before))
		r.destination.forget(client.ObjectKeyFromObject(before))
		return nil
	}
	if was != nil && was.UID == is.UID && was.Spec.NodeName == is.Spec.NodeName &&
		equality.Semantic.DeepEqual(was.Labels, is.Labels) && equality.Semantic.DeepEqual(was.Annotations, is.Annotations) &&
		equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions) &&
		equality.Semantic.DeepEqual(was.ManagedFields, is.ManagedFields) &&
		(podprobe.Complete(is) || was.ResourceVersion == is.ResourceVersion) {
		return nil
	}
	return requestFor(is)
}

// podsWithNewResults returns the pods whose results in a NodePodProbe have changed.
func (r *podReconciler) podsWithNewResults(_ context.Context, before, after client.Object) []ctrl.Request {
	is, ok := after.(*v1alpha1.NodePodProbe)
	if !ok {
		return nil // the pods keep their last results
	}
	known := map[string][]v1alpha1.ContainerProbeState{}
	if was, ok := before.(*v1alpha1.NodePodProbe); ok {
		for _, status := range was.Status.PodProbeStatuses {
			known[status.UID] = status.ProbeStates
		}
	}
	var requests []ctrl.Request
	for _, status := range is.Status.PodProbeStatuses {
		if states, ok := known[status.UID]; !ok || !equality.Semantic.DeepEqual(states, status.ProbeStates) {
			requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: status.Namespace, Name: status.Name}})
		}
	}
	return requests
}

// podsOfMarker returns the pods that a marker selects, and the pods with fields that Refit has applied.
func (r *podReconciler) podsOfMarker(ctx context.Context, before, after client.Object) []ctrl.Request {
	either := after
	if either == nil {
		either = before
	}
	pods, err := r.listPods(ctx, client.InNamespace(either.GetNamespace()))
	if err != nil {
		r.log.Error("list pods of marker", "marker", client.ObjectKeyFromObject(either).String(), "err", err)
	}
	all := markersOf(before, after)
	var requests []ctrl.Request
	for _, pod := range pods {
		selected := len(pod.ManagedFields) > 0
		for _, marker := range all {
			selected = selected || marker.Selects(pod)
		}
		if selected {
			requests = append(requests, requestFor(pod)...)
		}
	}
	return requests
}

func requestFor(object client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}
