package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	syncInterval = 500 * time.Millisecond
	// changedAnnotation is set on a pod of the backend when the content of its volumes has changed: a changed pod is synchronized by
	// kubelet at once, with its volumes, and any other about once a minute.
	changedAnnotation = "virtual-node.test/changed"
)

// run synchronizes all pods until the context ends.
func (p *provider) run(ctx context.Context) error {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		pods, err := p.GetPods(ctx)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if err := p.sync(ctx, pod); err != nil && ctx.Err() == nil {
				log.G(ctx).WithError(err).Errorf("synchronize pod %s", keyOf(pod))
			}
		}
	}
}

// sync copies the content of the volumes of a pod to the backend, and the status of its pod of the backend to the pod.
func (p *provider) sync(ctx context.Context, pod *corev1.Pod) error {
	current, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get pod: %w", err)
	}
	if err != nil || current.UID != pod.UID {
		return p.remove(ctx, pod)
	}
	running, err := p.client.CoreV1().Pods(p.namespace).Get(ctx, backendName(pod), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return p.ended(ctx, current)
	}
	if err != nil {
		return fmt.Errorf("get pod %s of the backend: %w", backendName(pod), err)
	}
	if err := p.patchStatus(ctx, current, statusOf(current, running)); err != nil {
		return err
	}
	changed, err := p.copyVolumes(ctx, current)
	if err != nil || !changed {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{changedAnnotation: time.Now().Format(time.RFC3339Nano)}}})
	if err != nil {
		return fmt.Errorf("encode annotation: %w", err)
	}
	if _, err := p.client.CoreV1().Pods(p.namespace).Patch(ctx, running.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("annotate pod %s of the backend: %w", running.Name, err)
	}
	return nil
}

// ended ends a pod that the backend does not have any more: it has been deleted, or its pod of the backend was evicted.
func (p *provider) ended(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp == nil {
		p.forget(pod)
		return p.patchStatus(ctx, pod, endOf(pod.Status))
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	if err := p.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod: %w", err)
	}
	return p.remove(ctx, pod)
}

// remove deletes what the backend has of a pod that does not exist any more.
func (p *provider) remove(ctx context.Context, pod *corev1.Pod) error {
	if err := p.DeletePod(ctx, pod); err != nil {
		return err
	}
	of := metav1.ListOptions{LabelSelector: uidLabel + "=" + string(pod.UID)}
	if err := p.client.CoreV1().Secrets(p.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, of); err != nil {
		return fmt.Errorf("delete the volumes of pod %s of the backend: %w", backendName(pod), err)
	}
	p.forget(pod)
	return nil
}
