// Package podapi reads and writes single pods for the controllers of refit-manager: steps of in-place updates, evictions and
// conditions. The callers decide which pods are written.
package podapi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/must"
)

// API implements inplace.Writer.
type API struct {
	Client client.Client
	Live   client.Reader // reads from the API server and not from a cache, because updates depend on the present state
	// Written counts a write of a kind of resource, and wraps its error with what was being done.
	Written func(resource, doing string, err error) error
}

// Pod reads a pod from the API server.
func (p *API) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := p.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	return pod, nil
}

// PatchPod writes a step of an update.
func (p *API) PatchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte) (*corev1.Pod, error) {
	stored := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	change := client.RawPatch(types.StrategicMergePatchType, patch)
	var err error
	if subresource == "" {
		err = p.Client.Patch(ctx, stored, change)
	} else {
		err = p.Client.SubResource(subresource).Patch(ctx, stored, change)
	}
	return stored, p.Written("pods", "patch pod "+pod.Namespace+"/"+pod.Name, err)
}

// TryPatchPod asks the API server whether it would accept a step of an update; nothing is stored.
func (p *API) TryPatchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte) error {
	answer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	change := client.RawPatch(types.StrategicMergePatchType, patch)
	var err error
	if subresource == "" {
		err = p.Client.Patch(ctx, answer, change, client.DryRunAll)
	} else {
		err = p.Client.SubResource(subresource).Patch(ctx, answer, change, client.DryRunAll)
	}
	if err != nil {
		return fmt.Errorf("try to patch pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// Evict evicts the pod, and fails if another pod has its name.
func (p *API) Evict(ctx context.Context, pod *corev1.Pod) error {
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}}
	return p.Written("pods", "evict pod "+pod.Name, p.Client.SubResource("eviction").Create(ctx, pod, eviction))
}

// SetCondition writes a condition. With the UID the write fails for another pod with the same name.
func (p *API) SetCondition(ctx context.Context, key types.NamespacedName, uid types.UID, condition *corev1.PodCondition) error {
	patch := must.JSON(map[string]any{
		"metadata": map[string]any{"uid": uid}, "status": map[string]any{"conditions": []*corev1.PodCondition{condition}},
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := p.Client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch))
	return p.Written("pods", "write condition of pod "+key.String(), err)
}
