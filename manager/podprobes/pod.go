package manager

import (
	"context"
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

// addPodMarks marks the pods.
func addPodMarks(mgr ctrl.Manager, cfg Config, p *probes) error {
	m := &podMarks{probes: p, written: map[types.NamespacedName]writtenMarks{}}
	return ctrl.NewControllerManagedBy(mgr).
		Named("podprobe-pod").
		Watches(&corev1.Pod{}, asked(0, m.ofPod)).
		Watches(&v1alpha1.NodePodProbe{}, asked(0, m.ofNode)).
		Watches(&v1alpha1.PodProbeMarker{}, asked(0, m.ofMarker), builder.WithPredicates(markerChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cfg.Workers}).
		Complete(m)
}

// maxNames bounds the names of probes in an Event, in bytes: with the rest of its note it has to stay below 1 KiB.
const maxNames = 512

// podMarks brings on each pod what its probes have said: at most one write for each change.
type podMarks struct {
	*probes

	mu sync.Mutex
	// written is what this process wrote last. It can be lost: see podprobe.Plan.
	written map[types.NamespacedName]writtenMarks
}

type writtenMarks struct {
	uid     types.UID
	version string // of the pod after the write
	wanted  podprobe.Marks
}

// Reconcile implements reconcile.Reconciler.
func (m *podMarks) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := m.client.Get(ctx, request.NamespacedName, &pod); err != nil {
		if apierrors.IsNotFound(err) {
			m.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	last, behind := m.last(request.NamespacedName, &pod)
	if behind || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // the change that is still missing brings us back
	}
	wanted, left, err := m.wanted(ctx, &pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	apply, changed := podprobe.Plan(&pod, wanted, last)
	if !changed {
		return ctrl.Result{}, nil
	}
	version, err := m.apply(ctx, &pod, apply)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	m.mu.Lock()
	m.written[request.NamespacedName] = writtenMarks{uid: pod.UID, version: version, wanted: wanted}
	m.mu.Unlock()
	if pod.Annotations[v1alpha1.AnnotationPodProbe] != wanted.Annotations[v1alpha1.AnnotationPodProbe] {
		m.tellLeftOut(&pod, left)
	}
	return ctrl.Result{}, nil
}

// tellLeftOut tells of the probes that a pod on a virtual node has no room for.
func (m *podMarks) tellLeftOut(pod *corev1.Pod, left []string) {
	if len(left) == 0 {
		return
	}
	names := result.Cut(strings.Join(left, ", "), maxNames)
	m.log.Warn("not all is probed: the probes of the pod do not fit into its annotation", "pod", pod.Namespace+"/"+pod.Name,
		"probes", len(left), "names", names)
	m.recorder.Eventf(pod, nil, corev1.EventTypeWarning, eventLeftOut, "Probe",
		"%d probes are left out, as they do not fit into the annotation %s: %s", len(left), v1alpha1.AnnotationPodProbe, names)
}

// last is what was wanted at the last write. The cache is behind until it has seen that write.
func (m *podMarks) last(key types.NamespacedName, pod *corev1.Pod) (last *podprobe.Marks, behind bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	written, ok := m.written[key]
	if !ok || written.uid != pod.UID {
		return nil, false
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, written.version)
	return &written.wanted, err == nil && order < 0
}

func (m *podMarks) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.written, key)
}

// wanted are the marks, and the probes that the pod cannot be told of.
func (m *podMarks) wanted(ctx context.Context, pod *corev1.Pod) (marks podprobe.Marks, left []string, err error) {
	markers, err := m.markers(ctx, pod.Namespace)
	if err != nil || len(markers) == 0 {
		return marks, nil, err
	}
	exists, virtual, err := m.virtual(ctx, pod.Spec.NodeName)
	if err != nil {
		return marks, nil, err
	}
	if exists && virtual {
		marks, left = podprobe.WantVirtual(pod, markers, m.now())
		return marks, left, nil
	}
	var node v1alpha1.NodePodProbe
	if err := m.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node); client.IgnoreNotFound(err) != nil {
		return marks, nil, named("find probes of node", err)
	}
	return podprobe.Want(pod, markers, podprobe.StatesOf(pod, node.Status), m.now()), nil, nil
}

// apply writes all marks of a pod at once, through its status: that needs no right to change what runs in it.
func (m *podMarks) apply(ctx context.Context, pod *corev1.Pod, marks podprobe.Marks) (version string, err error) {
	body := &corev1.Pod{}
	body.Labels, body.Annotations, body.Status.Conditions = marks.Labels, marks.Annotations, marks.Conditions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(body)
	if err != nil {
		return "", named("encode marks", err)
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
			return "", named("encode marks", err)
		}
	}
	err = m.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config), client.FieldOwner(podprobe.FieldManager), client.ForceOwnership)
	if apierrors.IsConflict(err) {
		return "", nil // another pod: its own change brings us back
	}
	return config.GetResourceVersion(), m.wrote("pods", "mark pod", err)
}

// ofPod is the pod if it has changed in what its marks depend on, or in the marks themselves.
func (m *podMarks) ofPod(_ context.Context, before, after client.Object) []ctrl.Request {
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

// ofNode are the pods for which a node has something new to say.
func (m *podMarks) ofNode(_ context.Context, before, after client.Object) []ctrl.Request {
	is, ok := after.(*v1alpha1.NodePodProbe)
	if !ok {
		return nil // what the probes said last stays said
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

// ofMarker are the pods it selects, and those that carry marks.
func (m *podMarks) ofMarker(ctx context.Context, before, after client.Object) []ctrl.Request {
	either := after
	if either == nil {
		either = before
	}
	pods, err := m.pods(ctx, client.InNamespace(either.GetNamespace()))
	if err != nil {
		m.log.Error("pods of a marker not listed", "marker", client.ObjectKeyFromObject(either).String(), "err", err)
	}
	all := selectors(before, after)
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
