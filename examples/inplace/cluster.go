package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// cluster implements inplace.Writer with client-go. A program that changes labels or annotations that environment variables
// refer to needs an inplace.API, which can also restart a container, for example by a ContainerRecreateRequest.
type cluster struct{ clientcorev1.CoreV1Interface }

func (c cluster) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return c.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (c cluster) PatchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte) (*corev1.Pod, error) {
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	return c.Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, subresources...)
}

func (c cluster) watch(ctx context.Context, pod *corev1.Pod) (watch.Interface, error) {
	return c.Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name).String(),
		ResourceVersion: pod.ResourceVersion,
	})
}
