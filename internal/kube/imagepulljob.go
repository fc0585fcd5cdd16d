package kube

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// ErrImagePullJobsNotServed means that the API server does not know ImagePullJobs: their CRD is not installed.
var ErrImagePullJobsNotServed = errors.New("imagepulljobs.apps.kruise.io are not served: install the CRDs")

// ImagePullJobs creates and reads ImagePullJobs in the newest version that the cluster serves. Its methods always use
// v1beta1. Clusters of OpenKruise 1.8 and earlier serve only v1alpha1, which has the same fields.
type ImagePullJobs struct {
	client rest.Interface
	alpha  bool
}

const resourceImagePullJob = "imagepulljobs"

// ImagePullJobs looks up the served version. The error is ErrImagePullJobsNotServed if there is none yet.
func (c *Client) ImagePullJobs(ctx context.Context) (*ImagePullJobs, error) {
	for _, alpha := range []bool{false, true} {
		version, addTo := v1beta1.GroupVersion(), v1beta1.AddToScheme
		if alpha {
			version, addTo = v1alpha1.GroupVersion(), v1alpha1.AddToScheme
		}
		served, err := c.serves(ctx, version.String(), resourceImagePullJob)
		if err != nil {
			return nil, err
		}
		if served {
			client, err := c.group(version, "/apis", runtime.ContentTypeJSON, addTo)
			return &ImagePullJobs{client: client, alpha: alpha}, err
		}
	}
	return nil, ErrImagePullJobsNotServed
}

// Create creates a job and returns it as stored.
func (j *ImagePullJobs) Create(ctx context.Context, job *v1beta1.ImagePullJob) (*v1beta1.ImagePullJob, error) {
	var object runtime.Object = job
	if j.alpha {
		object = &v1alpha1.ImagePullJob{ObjectMeta: job.ObjectMeta, Spec: job.Spec}
	}
	stored, err := j.read(j.client.Post().Resource(resourceImagePullJob).Namespace(job.Namespace).Body(object).Do(ctx))
	if err != nil {
		return nil, fmt.Errorf("create ImagePullJob: %w", err)
	}
	return stored, nil
}

// Get reads a job from the API server, not from a cache.
func (j *ImagePullJobs) Get(ctx context.Context, namespace, name string) (*v1beta1.ImagePullJob, error) {
	stored, err := j.read(j.client.Get().Resource(resourceImagePullJob).Namespace(namespace).Name(name).Do(ctx))
	if err != nil {
		return nil, fmt.Errorf("get ImagePullJob %s/%s: %w", namespace, name, err)
	}
	return stored, nil
}

// Delete deletes a job, which cancels its pulls in progress.
func (j *ImagePullJobs) Delete(ctx context.Context, job *v1beta1.ImagePullJob) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &job.UID}}
	err := j.client.Delete().Resource(resourceImagePullJob).Namespace(job.Namespace).Name(job.Name).Body(options).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("delete ImagePullJob %s/%s: %w", job.Namespace, job.Name, err)
	}
	return nil
}

// Node reads the NodeImage of a node, which has its pulls.
func (j *ImagePullJobs) Node(ctx context.Context, name string) (*v1beta1.NodeImage, error) {
	images := NodeImages{client: j.client, alpha: j.alpha}
	object := images.object()
	if err := j.client.Get().Resource(v1beta1.ResourceNodeImage).Name(name).Do(ctx).Into(object); err != nil {
		return nil, fmt.Errorf("get NodeImage %s: %w", name, err)
	}
	if alpha, ok := object.(*v1alpha1.NodeImage); ok {
		return &v1beta1.NodeImage{ObjectMeta: alpha.ObjectMeta, Spec: alpha.Spec, Status: alpha.Status}, nil
	}
	return object.(*v1beta1.NodeImage), nil
}

func (j *ImagePullJobs) read(result rest.Result) (*v1beta1.ImagePullJob, error) {
	if !j.alpha {
		stored := &v1beta1.ImagePullJob{}
		return stored, result.Into(stored)
	}
	stored := &v1alpha1.ImagePullJob{}
	err := result.Into(stored)
	return &v1beta1.ImagePullJob{ObjectMeta: stored.ObjectMeta, Spec: stored.Spec, Status: stored.Status}, err
}
