package ownpod

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/internal/kube/serverclock"
)

var (
	// ErrNotFound means that there is no such object, or its kind is not served.
	ErrNotFound = errors.New("not found")
	// ErrForbidden means that this program's role does not allow it.
	ErrForbidden = errors.New("forbidden")
	// ErrConflict means that the object has another UID or another version than expected.
	ErrConflict = errors.New("conflict")
)

// Reference names an object, or with an empty Name a collection.
type Reference struct {
	// Group is empty for the core group; Resource is the plural.
	Group, Version, Resource string
	Namespace, Name          string
	// Subresource is "status" or empty.
	Subresource string
}

// String returns a name for messages.
func (r Reference) String() string {
	s := r.Resource
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	if r.Group != "" {
		s += "." + r.Group
	}
	switch {
	case r.Name == "":
		return s + " in " + r.Namespace
	case r.Namespace == "":
		return s + " " + r.Name
	}
	return s + " " + r.Namespace + "/" + r.Name
}

// path returns the path in the API.
func (r Reference) path() []string {
	path := []string{"/apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"/api", r.Version}
	}
	if r.Namespace != "" {
		path = append(path, "namespaces", r.Namespace)
	}
	path = append(path, r.Resource)
	for _, part := range []string{r.Name, r.Subresource} {
		if part != "" {
			path = append(path, part)
		}
	}
	return path
}

// InCluster returns the connection of the pod's service account. A renewed token is read again.
func InCluster(userAgent string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("load service account: %w", err)
	}
	config.UserAgent = userAgent
	return config, nil
}

// Client talks to the API server. It sends at most 5 requests a second, and 10 at once (client-go's default), because there
// may be as many sidecars as pods.
type Client struct {
	rest  rest.Interface
	clock serverclock.Clock
}

// ClockOffset is the API server's clock minus ours.
func (c *Client) ClockOffset() time.Duration { return c.clock.Offset() }

// NewClient returns a client without sending anything.
func NewClient(config *rest.Config) (*Client, error) {
	made := &Client{}
	config = rest.CopyConfig(config)
	config.Wrap(made.clock.Wrap)
	config.APIPath = "/api"
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.ContentType = runtime.ContentTypeJSON
	// Only errors of the API are decoded; objects are returned as JSON.
	statuses := runtime.NewScheme()
	metav1.AddToGroupVersion(statuses, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(statuses).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client for the API server: %w", err)
	}
	made.rest = client
	return made, nil
}

// Get reads an object as JSON.
func (c *Client) Get(ctx context.Context, ref Reference) ([]byte, error) {
	b, err := answer(c.rest.Get().AbsPath(ref.path()...).Do(ctx))
	return b, named("get", ref, err)
}

// Patch patches an object and returns the result. The media type is the kind of patch.
func (c *Client) Patch(ctx context.Context, ref Reference, mediaType string, body []byte) ([]byte, error) {
	b, err := answer(c.rest.Patch(types.PatchType(mediaType)).AbsPath(ref.path()...).Body(body).Do(ctx))
	return b, named("patch", ref, err)
}

// Create creates an object in the collection ref. The error is ErrConflict if the name exists.
func (c *Client) Create(ctx context.Context, ref Reference, body []byte) ([]byte, error) {
	b, err := answer(c.rest.Post().AbsPath(ref.path()...).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx))
	return b, named("create", ref, err)
}

// Serves reports whether the API server knows a resource.
func (c *Client) Serves(ctx context.Context, ref Reference) (bool, error) {
	b, err := answer(c.rest.Get().AbsPath("/apis", ref.Group, ref.Version).Do(ctx))
	if err != nil {
		err = named("discover", ref, err)
		if errors.Is(err, ErrNotFound) {
			return false, nil
		}
		return false, err
	}
	var list struct {
		Resources []struct {
			Name string `json:"name"`
		} `json:"resources"`
	}
	if err := decode(b, ref, &list); err != nil {
		return false, err
	}
	for _, r := range list.Resources {
		if r.Name == ref.Resource {
			return true, nil
		}
	}
	return false, nil
}

// answer returns the object, or the error with the message of the API server, which Raw alone does not read.
func answer(result rest.Result) ([]byte, error) {
	b, err := result.Raw()
	if err != nil {
		err = result.Error()
	}
	return b, err
}

// named adds the operation to an error, and wraps the errors of this package according to the API's codes.
func named(doing string, ref Reference, err error) error {
	if err == nil {
		return nil
	}
	var kind error
	switch {
	case apierrors.IsNotFound(err):
		kind = ErrNotFound
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		kind = ErrForbidden
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		kind = ErrConflict
	}
	if kind != nil {
		return fmt.Errorf("%s %s: %w: %w", doing, ref, kind, err)
	}
	return fmt.Errorf("%s %s: %w", doing, ref, err)
}
