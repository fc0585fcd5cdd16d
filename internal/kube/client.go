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
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/guard/informer"
)

// Client talks to the API server with the types that a program on one node needs.
type Client struct {
	http   *http.Client
	config *rest.Config
	core   rest.Interface // core/v1 as protobuf
	guard  *guard.Guard   // for what informers call
}

// Guard sets the guard for informers that are created from now on. Without it, a panic for one object ends the program.
func (c *Client) Guard(g *guard.Guard) { c.guard = g }

// newInformer returns an informer for the objects of the source, trimmed by transform.
func newInformer(g *guard.Guard, source *cache.ListWatch, object runtime.Object, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	i := informer.Guard(cache.NewSharedIndexInformer(patient(source), object, 0, cache.Indexers{}), g)
	if err := i.SetTransform(transform); err != nil {
		return nil, fmt.Errorf("trim cached objects: %w", err)
	}
	return i, nil
}

// NewClient returns a client without sending anything. All clients derived from it share its connection.
func NewClient(config *rest.Config) (*Client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make HTTP client for the API server: %w", err)
	}
	c := &Client{http: httpClient, config: config}
	c.core, err = c.group(corev1.SchemeGroupVersion, "/api", runtime.ContentTypeProtobuf, corev1.AddToScheme)
	return c, err
}

// group returns a REST client for one API group.
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

// Pod reads one pod from the API server, not from a cache. Not found is an error of apierrors.
func (c *Client) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := c.core.Get().Resource("pods").Namespace(namespace).Name(name).Do(ctx).Into(pod)
	if err != nil {
		return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	return pod, nil
}

// Annotate sets one annotation of a pod through its status subresource, which needs no permission to update pods. The UID
// ensures that it does not write to a later pod with the same name.
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
