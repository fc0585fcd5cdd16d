// Package prepull has the images of SidecarSets pulled by ImagePullJobs before the first container is stopped.
package prepull

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

const (
	// pullLimit is how long an update waits for its images. A node that does not have one then pulls it when the container
	// is replaced.
	pullLimit = 10 * time.Minute
	// pullKept is how long an ImagePullJob stays after its end, in seconds.
	pullKept = 3600
	// pullParallel is on how many nodes an image is pulled at a time.
	pullParallel = 50
)

// Puller creates ImagePullJobs.
type Puller struct {
	Client    client.Client
	Namespace string // of the ImagePullJobs
	Clock     func() time.Time
	// Written counts a write of imagepulljobs, and adds to its error what was being done.
	Written func(resource, doing string, err error) error
}

// Pull creates the ImagePullJob of an image for a revision of a SidecarSet, and reports whether it has ended. Nodes are asked for
// when it is created.
func (r *Puller) Pull(ctx context.Context, set *v1beta1.SidecarSet, revision, image string, nodesOf func(context.Context) ([]string, error)) (bool, error) {
	sum := fnv.New64a()
	fmt.Fprint(sum, revision, image)
	job := &v1beta1.ImagePullJob{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: fmt.Sprintf("%s-%x", set.Name, sum.Sum64())}
	err := r.Client.Get(ctx, key, job)
	if err == nil {
		late := !job.CreationTimestamp.IsZero() && r.Clock().Sub(job.CreationTimestamp.Time) > pullLimit
		return job.Status.CompletionTime != nil || late, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get ImagePullJob %s: %w", key.Name, err)
	}
	nodes, err := nodesOf(ctx)
	if err != nil || len(nodes) == 0 {
		return err == nil, err
	}
	job.Namespace, job.Name = key.Namespace, key.Name
	job.Labels = map[string]string{v1beta1.LabelSidecarSetName: set.Name}
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1beta1.GroupVersion().WithKind(v1beta1.KindSidecarSet))}
	job.Spec.Image = image
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: nodes}
	job.Spec.Parallelism = new(intstr.FromInt32(pullParallel))
	job.Spec.CompletionPolicy = v1beta1.CompletionPolicy{
		Type: v1beta1.CompletionAlways, ActiveDeadlineSeconds: new(int64(pullLimit / time.Second)), TTLSecondsAfterFinished: new(int32(pullKept)),
	}
	for _, secret := range set.Spec.ImagePullSecrets {
		job.Spec.PullSecrets = append(job.Spec.PullSecrets, secret.Name)
	}
	err = r.Written("imagepulljobs", "create ImagePullJob "+key.Name, r.Client.Create(ctx, job))
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return false, err
}
