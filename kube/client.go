package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Client talks to the API server with the types of one node's work.
type Client struct {
	http   *http.Client
	config *rest.Config
	core   rest.Interface // core/v1 as protobuf
}

// NewClient makes a client; nothing is sent yet. All clients made from it share its connection.
func NewClient(config *rest.Config) (*Client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make HTTP client for the API server: %w", err)
	}
	c := &Client{http: httpClient, config: config}
	c.core, err = c.group(corev1.SchemeGroupVersion, "/api", runtime.ContentTypeProtobuf, corev1.AddToScheme)
	return c, err
}

// group makes a REST client for one API group.
func (c *Client) group(version schema.GroupVersion, path, contentType string, addTo func(*runtime.Scheme) error) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := addTo(scheme); err != nil {
		return nil, fmt.Errorf("register types of %s: %w", version, err)
	}
	metav1.AddToGroupVersion(scheme, version)
	config := rest.CopyConfig(c.config)
	config.GroupVersion = &version
	config.APIPath = path
	config.ContentType = contentType
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, c.http)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", version, err)
	}
	return client, nil
}

// Pod reads one pod from the API server, past every cache. Not found is an error of apierrors.
func (c *Client) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := c.core.Get().Resource("pods").Namespace(namespace).Name(name).Do(ctx).Into(pod)
	if err != nil {
		return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	return pod, nil
}

// Annotate sets one annotation of a pod through its status subresource, which needs no right to update pods.
// The UID makes sure that it is not the next pod of that name.
func (c *Client) Annotate(ctx context.Context, pod *corev1.Pod, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         pod.UID,
		"annotations": map[string]string{key: value},
	}})
	if err != nil {
		return fmt.Errorf("encode annotation %s: %w", key, err)
	}
	err = c.core.Patch(types.MergePatchType).Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("status").Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("annotate pod %s/%s with %s: %w", pod.Namespace, pod.Name, key, err)
	}
	return nil
}
