package podprobes

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/podprobe"
	"github.com/refit-project/refit/result"
)

// addPods adds the controller that applies probe results to pods.
func addPods(mgr ctrl.Manager, cfg Config, a *api) error {
	r := newPodReconciler(a)
	return ctrl.NewControllerManagedBy(mgr).
		Named("podprobe-pod").
		Watches(&corev1.Pod{}, enqueue(0, r.changedPod)).
		Watches(&v1alpha1.NodePodProbe{}, enqueue(0, r.podsWithNewResults)).
		Watches(&v1alpha1.PodProbeMarker{}, enqueue(0, r.podsOfMarker), builder.WithPredicates(markerChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers}).
		Complete(r)
}

// maxNames bounds the names of probes in an Event, in bytes: the API server limits the whole note to 1 KiB.
const maxNames = 512

// podReconciler applies to each pod the labels, annotations and conditions that follow from its probe results: at most
// one write for each change.
type podReconciler struct {
	*api

	mu sync.Mutex
	// applied is what this process has applied last. It is lost with the process: see podprobe.Plan.
	applied map[types.NamespacedName]applied
}

type applied struct {
	uid     types.UID
	version string // resourceVersion of the pod after the write
	desired podprobe.Fields
}

func newPodReconciler(a *api) *podReconciler {
	return &podReconciler{api: a, applied: map[types.NamespacedName]applied{}}
}

// Reconcile implements reconcile.Reconciler.
func (r *podReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.client.Get(ctx, request.NamespacedName, &pod); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	last, behind := r.last(request.NamespacedName, &pod)
	if behind || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // the watch event that the cache lacks enqueues the pod again
	}
	desired, omitted, err := r.desired(ctx, &pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	apply, changed := podprobe.Plan(&pod, desired, last)
	if !changed {
		return ctrl.Result{}, nil
	}
	version, err := r.apply(ctx, &pod, apply)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.mu.Lock()
	r.applied[request.NamespacedName] = applied{uid: pod.UID, version: version, desired: desired}
	r.mu.Unlock()
	if pod.Annotations[v1alpha1.AnnotationPodProbe] != desired.Annotations[v1alpha1.AnnotationPodProbe] {
		r.recordOmitted(&pod, omitted)
	}
	return ctrl.Result{}, nil
}

// recordOmitted reports the probes that exceed the size of the annotation of a pod on a virtual node.
func (r *podReconciler) recordOmitted(pod *corev1.Pod, omitted []string) {
	if len(omitted) == 0 {
		return
	}
	names := result.Cut(strings.Join(omitted, ", "), maxNames)
	r.log.Warn("probes are left out: they exceed the size of the pod's annotation", "pod", pod.Namespace+"/"+pod.Name,
		"probes", len(omitted), "names", names)
	r.recorder.Eventf(pod, nil, corev1.EventTypeWarning, eventLeftOut, "Probe",
		"%d probes are left out, as they exceed the size of the annotation %s: %s", len(omitted), v1alpha1.AnnotationPodProbe, names)
}

// last returns what was desired at the last write. The cache is behind until it has received that write.
func (r *podReconciler) last(key types.NamespacedName, pod *corev1.Pod) (last *podprobe.Fields, behind bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	written, ok := r.applied[key]
	if !ok || written.uid != pod.UID {
		return nil, false
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, written.version)
	return &written.desired, err == nil && order < 0
}

func (r *podReconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.applied, key)
}

// desired returns what the pod is to carry, and the names of the probes that are left out.
func (r *podReconciler) desired(ctx context.Context, pod *corev1.Pod) (fields podprobe.Fields, omitted []string, err error) {
	markers, err := r.listMarkers(ctx, pod.Namespace)
	if err != nil || len(markers) == 0 {
		return fields, nil, err
	}
	exists, virtual, err := r.nodeKind(ctx, pod.Spec.NodeName)
	if err != nil {
		return fields, nil, err
	}
	if exists && virtual {
		fields, omitted = podprobe.DesiredOnVirtualNode(pod, markers, r.now())
		return fields, omitted, nil
	}
	var node v1alpha1.NodePodProbe
	if err := r.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node); client.IgnoreNotFound(err) != nil {
		return fields, nil, fmt.Errorf("get NodePodProbe: %w", err)
	}
	return podprobe.Desired(pod, markers, podprobe.StatesOf(pod, node.Status), r.now()), nil, nil
}

// apply writes labels, annotations and conditions at once, through the status subresource: that needs no permission to
// change the pod's spec.
func (r *podReconciler) apply(ctx context.Context, pod *corev1.Pod, fields podprobe.Fields) (version string, err error) {
	body := &corev1.Pod{}
	body.Labels, body.Annotations, body.Status.Conditions = fields.Labels, fields.Annotations, fields.Conditions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(body)
	if err != nil {
		return "", fmt.Errorf("encode probe results: %w", err)
	}
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		// The UID makes it fail for another pod of the same name.
		"metadata": map[string]any{"namespace": pod.Namespace, "name": pod.Name, "uid": string(pod.UID)},
	}}
	for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"status", "conditions"}} {
		value, found, err := unstructured.NestedFieldNoCopy(content, path...)
		if err == nil && found {
			err = unstructured.SetNestedField(config.Object, value, path...)
		}
		if err != nil {
			return "", fmt.Errorf("encode probe results: %w", err)
		}
	}
	err = r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config), client.FieldOwner(podprobe.FieldManager), client.ForceOwnership)
	if apierrors.IsConflict(err) {
		return "", nil // another pod of that name, which has its own watch event
	}
	return config.GetResourceVersion(), r.written("pods", "apply probe results to pod", err)
}

// changedPod returns the pod if something has changed that its probe results depend on, or what has been applied.
func (r *podReconciler) changedPod(_ context.Context, before, after client.Object) []ctrl.Request {
	was, is := asPod(before), asPod(after)
	if is == nil {
		return requestFor(before)
	}
	if was != nil && was.UID == is.UID && was.Spec.NodeName == is.Spec.NodeName &&
		equality.Semantic.DeepEqual(was.Labels, is.Labels) && equality.Semantic.DeepEqual(was.Annotations, is.Annotations) &&
		equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions) &&
		equality.Semantic.DeepEqual(was.ManagedFields, is.ManagedFields) {
		return nil
	}
	return requestFor(is)
}

// podsWithNewResults returns the pods whose results in a NodePodProbe have changed.
func (r *podReconciler) podsWithNewResults(_ context.Context, before, after client.Object) []ctrl.Request {
	is, ok := after.(*v1alpha1.NodePodProbe)
	if !ok {
		return nil // the last results stay on the pods
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

// podsOfMarker returns the pods that a marker selects, and those with fields that Refit has applied.
func (r *podReconciler) podsOfMarker(ctx context.Context, before, after client.Object) []ctrl.Request {
	either := after
	if either == nil {
		either = before
	}
	pods, err := r.listPods(ctx, client.InNamespace(either.GetNamespace()))
	if err != nil {
		r.log.Error("list pods of marker", "marker", client.ObjectKeyFromObject(either).String(), "err", err)
	}
	all := compileEither(before, after)
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
