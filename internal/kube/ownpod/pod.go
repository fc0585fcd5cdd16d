package ownpod

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/identity"
)

// PodReference names a pod.
func PodReference(pod identity.Pod) Reference {
	return Reference{Version: "v1", Resource: "pods", Namespace: pod.Namespace, Name: pod.Name}
}

// Pod reads a pod.
func (c *Client) Pod(ctx context.Context, pod identity.Pod) (*corev1.Pod, error) {
	b, err := c.Get(ctx, PodReference(pod))
	if err != nil {
		return nil, err
	}
	read := &corev1.Pod{}
	return read, decode(b, PodReference(pod), read)
}
