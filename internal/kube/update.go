package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
)

// PatchPod sends a strategic merge patch to the pod or one of its subresources and returns the pod as stored.
func (c *Client) PatchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte) (*corev1.Pod, error) {
	return c.patchPod(ctx, pod, subresource, patch, nil)
}

// TryPatchPod asks the API server whether it would accept a patch (dryRun=All); nothing is stored.
func (c *Client) TryPatchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte) error {
	_, err := c.patchPod(ctx, pod, subresource, patch, []string{metav1.DryRunAll})
	return err
}

func (c *Client) patchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte, dryRun []string) (*corev1.Pod, error) {
	request := c.core.Patch(types.StrategicMergePatchType).Resource("pods").Namespace(pod.Namespace).Name(pod.Name)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	for _, mode := range dryRun {
		request = request.Param("dryRun", mode)
	}
	stored := &corev1.Pod{}
	if err := request.Body(patch).Do(ctx).Into(stored); err != nil {
		return nil, fmt.Errorf("patch pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return stored, nil
}

// WatchPod watches one pod from its resource version on. The caller stops the watch.
func (c *Client) WatchPod(ctx context.Context, pod *corev1.Pod) (watch.Interface, error) {
	return c.core.Get().Resource("pods").Namespace(pod.Namespace).
		Param("watch", "true").Param("resourceVersion", pod.ResourceVersion).
		Param("fieldSelector", fields.OneTermEqualSelector("metadata.name", pod.Name).String()).Watch(ctx)
}

// ErrNoTemplate means that an owner has no readable pod template.
var ErrNoTemplate = errors.New("no pod template")

// maxOwner bounds the object that is read for its template, in bytes: the API server stores less than 1.5 MiB.
const maxOwner = 4 << 20

// Template reads the pod template of a workload. Its resource name is assumed to be the plural of its kind.
func (c *Client) Template(ctx context.Context, namespace string, owner metav1.OwnerReference) (*corev1.PodTemplateSpec, error) {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("read owner %s %s: %w", owner.Kind, owner.Name, err)
	}
	prefix := []string{"/apis", version.Group, version.Version}
	if version.Group == "" {
		prefix = []string{"/api", version.Version}
	}
	path := slices.Concat(prefix, []string{"namespaces", namespace, strings.ToLower(owner.Kind) + "s", owner.Name})
	data, err := c.core.Get().AbsPath(path...).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read owner %s %s: %w", owner.Kind, owner.Name, err)
	}
	var workload struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if len(data) > maxOwner {
		return nil, fmt.Errorf("read owner %s %s: more than %d bytes", owner.Kind, owner.Name, maxOwner)
	}
	if err := foreign.Object(data, &workload); err != nil || workload.Spec.Template == nil {
		return nil, fmt.Errorf("read owner %s %s: %w", owner.Kind, owner.Name, errors.Join(ErrNoTemplate, err))
	}
	return workload.Spec.Template, nil
}

// Create creates a request.
func (r *Requests) Create(ctx context.Context, request *v1beta1.ContainerRecreateRequest) error {
	var object runtime.Object = request
	if r.alpha {
		object = &v1alpha1.ContainerRecreateRequest{ObjectMeta: request.ObjectMeta, Spec: request.Spec, Status: request.Status}
	}
	err := r.client.Post().Resource(resource).Namespace(request.Namespace).Body(object).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("create request %s/%s: %w", request.Namespace, request.Name, err)
	}
	return nil
}

// Get reads a request from the API server, not from a cache.
func (r *Requests) Get(ctx context.Context, namespace, name string) (*v1beta1.ContainerRecreateRequest, error) {
	var stored runtime.Object = &v1beta1.ContainerRecreateRequest{}
	if r.alpha {
		stored = &v1alpha1.ContainerRecreateRequest{}
	}
	err := r.client.Get().Resource(resource).Namespace(namespace).Name(name).Do(ctx).Into(stored)
	if err != nil {
		return nil, fmt.Errorf("get request %s/%s: %w", namespace, name, err)
	}
	if alpha, ok := stored.(*v1alpha1.ContainerRecreateRequest); ok {
		return v1alpha1.ToV1beta1(alpha), nil
	}
	return stored.(*v1beta1.ContainerRecreateRequest), nil
}
