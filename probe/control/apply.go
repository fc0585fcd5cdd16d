package control

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/stale"
	"github.com/refit-project/refit/probe/podprobe"
)

// eventOverridden is the reason of the Event about labels and annotations that another writer has changed.
const eventOverridden = "ProbeResultOverridden"

// maxNames limits the names of probes in an Event, in bytes. The API server limits the whole note to 1 KiB.
const maxNames = 512

// podDestination applies labels, annotations and conditions to pods according to their probe results, with at most one
// write for each change.
type podDestination struct {
	*api

	mu sync.Mutex
	// applied is what this process applied last. It is lost with the process: see podprobe.Plan.
	applied map[types.NamespacedName]applied
	// refusals records what the API server has refused. The next process tries it again.
	refusals map[types.NamespacedName]refusal
}

type applied struct {
	uid     types.UID
	version string // resourceVersion of the pod after the write
	desired podprobe.Fields
}

func newPodDestination(a *api) *podDestination {
	return &podDestination{api: a, applied: map[types.NamespacedName]applied{}, refusals: map[types.NamespacedName]refusal{}}
}

// Write implements result.Destination. It sends nothing for a pod that is gone or terminating, or while the cache is
// older than the last write: the missing watch event will request the pod again.
func (d *podDestination) Write(ctx context.Context, key types.NamespacedName) (result.Requests, error) {
	var cached corev1.Pod
	if err := d.client.Get(ctx, key, &cached); err != nil {
		if apierrors.IsNotFound(err) {
			d.forget(key)
		}
		return result.Requests{}, client.IgnoreNotFound(err)
	}
	last, behind := d.last(key, &cached)
	if behind || cached.Spec.NodeName == "" || cached.DeletionTimestamp != nil {
		return result.Requests{}, nil
	}
	markers, err := d.listMarkers(ctx, key.Namespace)
	if err != nil {
		return result.Requests{}, err
	}
	pod, reads, err := d.complete(ctx, &cached, markers)
	sent := result.Requests{Reads: reads}
	if err != nil || pod == nil {
		return sent, err
	}
	desired, omitted, err := d.desired(ctx, pod, markers)
	if err != nil {
		return sent, err
	}
	d.removeRefused(pod, desired)
	planned := podprobe.Plan(pod, desired, last)
	if !planned.Changed {
		return sent, nil
	}
	sent.Writes = 1
	version, err := d.apply(ctx, pod, planned.Apply)
	if refused(err) {
		version, err = d.applyAccepted(ctx, pod, planned.Apply, desired, err)
	}
	if err != nil {
		return sent, client.IgnoreNotFound(err)
	}
	d.mu.Lock()
	d.applied[key] = applied{uid: pod.UID, version: version, desired: desired}
	d.mu.Unlock()
	d.recordOverridden(pod, planned.Overridden)
	if pod.Annotations[v1alpha1.AnnotationPodProbe] != desired.Annotations[v1alpha1.AnnotationPodProbe] {
		d.recordOmitted(pod, omitted)
	}
	return sent, nil
}

// recordOverridden sends an Event about labels and annotations that another writer has changed, and that Refit leaves
// unchanged.
func (d *podDestination) recordOverridden(pod *corev1.Pod, keys []string) {
	if len(keys) == 0 {
		return
	}
	d.recorder.Eventf(pod, nil, corev1.EventTypeNormal, eventOverridden, "Probe",
		"Changed by others, and left alone until the state of the probe changes: %s", foreign.Cut(strings.Join(keys, ", "), maxNames))
}

// recordOmitted sends an Event about the probes that are missing from the annotation of a pod on a virtual node.
func (d *podDestination) recordOmitted(pod *corev1.Pod, omitted []string) {
	if len(omitted) == 0 {
		return
	}
	names := foreign.Cut(strings.Join(omitted, ", "), maxNames)
	d.log.Warn("probes are left out of the pod's annotation", "pod", pod.Namespace+"/"+pod.Name,
		"probes", len(omitted), "names", names)
	d.recorder.Eventf(pod, nil, corev1.EventTypeWarning, eventLeftOut, "Probe",
		"%d probes are left out, as they exceed the size of the annotation %s or another probe has their podConditionType: %s", len(omitted), v1alpha1.AnnotationPodProbe, names)
}

// last returns what was desired at the last write. behind says that the cache has not received that write yet.
func (d *podDestination) last(key types.NamespacedName, pod *corev1.Pod) (last *podprobe.Fields, behind bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	written, ok := d.applied[key]
	if !ok || written.uid != pod.UID {
		return nil, false
	}
	return &written.desired, stale.Older(pod.ResourceVersion, written.version)
}

func (d *podDestination) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.applied, key)
	delete(d.refusals, key)
}

// desired returns the fields that the pod should have, and the names of the probes that are left out.
func (d *podDestination) desired(ctx context.Context, pod *corev1.Pod, markers []podprobe.Marker) (fields podprobe.Fields, omitted []string, err error) {
	if len(markers) == 0 {
		return fields, nil, nil
	}
	exists, virtual, err := d.nodeKind(ctx, pod.Spec.NodeName)
	if err != nil {
		return fields, nil, err
	}
	if exists && virtual {
		fields, omitted = podprobe.DesiredOnVirtualNode(pod, markers, d.now())
		return fields, omitted, nil
	}
	if d.omitted.has(pod) {
		return fields, nil, nil // the fields that its probes have set no longer apply
	}
	var node v1alpha1.NodePodProbe
	if err := d.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node); client.IgnoreNotFound(err) != nil {
		return fields, nil, fmt.Errorf("get NodePodProbe: %w", err)
	}
	return podprobe.Desired(pod, markers, podprobe.StatesOf(pod, node.Status), d.now()), nil, nil
}

// apply writes labels, annotations and conditions in one request to the status subresource, which needs no permission
// to change the pod's spec.
func (d *podDestination) apply(ctx context.Context, pod *corev1.Pod, fields podprobe.Fields, opts ...client.SubResourceApplyOption) (version string, err error) {
	body := &corev1.Pod{}
	body.Labels, body.Annotations, body.Status.Conditions = fields.Labels, fields.Annotations, fields.Conditions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(body)
	if err != nil {
		return "", fmt.Errorf("encode probe results: %w", err)
	}
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		// With the UID the write fails for another pod with the same name.
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
	opts = append(opts, client.FieldOwner(managedfields.FieldManager), client.ForceOwnership)
	err = d.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config), opts...)
	if apierrors.IsConflict(err) {
		return "", nil // another pod with this name, which has its own watch event
	}
	return config.GetResourceVersion(), d.written("pods", "apply probe results to pod", err)
}
