package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// provider runs the pods of the node as pods of the backend.
type provider struct {
	client    kubernetes.Interface
	namespace string

	mu     sync.Mutex
	pods   map[types.NamespacedName]*corev1.Pod // as virtual-kubelet has passed them on
	tokens map[string]token
}

func newProvider(client kubernetes.Interface, namespace string) *provider {
	return &provider{client: client, namespace: namespace, pods: map[types.NamespacedName]*corev1.Pod{}, tokens: map[string]token{}}
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// CreatePod gets the pod with the environment of its containers resolved.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	translated, err := translate(pod, p.namespace)
	if err != nil {
		return err
	}
	if _, err := p.copyVolumes(ctx, pod); err != nil {
		return err
	}
	_, err = p.client.CoreV1().Pods(p.namespace).Create(ctx, translated, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) { // it exists after a restart of this program
		return fmt.Errorf("create pod %s of the backend: %w", translated.Name, err)
	}
	p.keep(pod)
	return nil
}

// UpdatePod changes images. Changed labels and annotations are in the volumes of the downward API after the next sync.
func (p *provider) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	pods := p.client.CoreV1().Pods(p.namespace)
	running, err := pods.Get(ctx, backendName(pod), metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // another pod with the name of one that was deleted
		return p.CreatePod(ctx, pod)
	}
	if err != nil {
		return fmt.Errorf("get pod %s of the backend: %w", backendName(pod), err)
	}
	if setImages(running.Spec.Containers, pod.Spec.Containers) || setImages(running.Spec.InitContainers, pod.Spec.InitContainers) {
		if _, err := pods.Update(ctx, running, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update images of pod %s of the backend: %w", running.Name, err)
		}
	}
	p.keep(pod)
	return nil
}

// DeletePod begins the deletion. The pod is kept until sync has seen the end of its containers.
func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	err := p.client.CoreV1().Pods(p.namespace).Delete(ctx, backendName(pod), metav1.DeleteOptions{GracePeriodSeconds: pod.DeletionGracePeriodSeconds})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s of the backend: %w", backendName(pod), err)
	}
	return nil
}

// GetPod returns the pod as it was passed on last: virtual-kubelet compares it with the current one.
func (p *provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod, ok := p.pods[types.NamespacedName{Namespace: namespace, Name: name}]; ok {
		return pod.DeepCopy(), nil
	}
	return nil, errdefs.NotFoundf("pod %s/%s is not on this node", namespace, name)
}

// GetPodStatus is not called for a provider with NotifyPods.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns the pods of the node.
func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(p.pods))
	for _, pod := range p.pods {
		pods = append(pods, pod.DeepCopy())
	}
	return pods, nil
}

// NotifyPods is there so that virtual-kubelet does not write the status of pods. It would replace the whole status by the one of the
// provider, without the conditions that a sidecar has written in the meantime. The provider patches the status instead.
func (p *provider) NotifyPods(context.Context, func(*corev1.Pod)) {}

func (p *provider) keep(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods[keyOf(pod)] = pod.DeepCopy()
}

// forget does not drop another pod that was created with the same name in the meantime.
func (p *provider) forget(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, ok := p.pods[keyOf(pod)]; ok && kept.UID == pod.UID {
		delete(p.pods, keyOf(pod))
	}
}
