// Package prepull pulls the images of SidecarSets by ImagePullJobs before the first container is stopped.
package prepull

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

const (
	// pullLimit is how long an update waits for its images. A node without the image then pulls it when the container
	// is replaced.
	pullLimit = 10 * time.Minute
	// pullKept is how long an ImagePullJob is kept after its end, in seconds.
	pullKept = 3600
	// pullParallel is the number of nodes that pull an image at the same time.
	pullParallel = 50
)

// Puller creates ImagePullJobs.
type Puller struct {
	Client    client.Client
	Namespace string // of the ImagePullJobs
	Clock     func() time.Time
	// Written counts a write of ImagePullJobs, and wraps its error with what was being done.
	Written func(resource, doing string, err error) error
}

// Pull creates an ImagePullJob for each image of a revision of a SidecarSet, and reports whether all jobs have ended,
// or cannot be created. When it creates a job, it calls pods for the pods whose nodes need the images.
func (r *Puller) Pull(ctx context.Context, set *v1beta1.SidecarSet, revision string, images []string, pods func() []types.NamespacedName) (bool, error) {
	all := true
	var errs []error
	for _, image := range images {
		done, err := r.pull(ctx, set, revision, image, pods)
		all = all && (done || refused(err))
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// refused reports whether the API server has refused an ImagePullJob because of a missing permission, a quota or a
// rule. It would refuse another attempt too.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

func (r *Puller) pull(ctx context.Context, set *v1beta1.SidecarSet, revision, image string, pods func() []types.NamespacedName) (bool, error) {
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
	nodes, err := r.nodes(ctx, pods())
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

// nodes returns the sorted nodes of pods.
func (r *Puller) nodes(ctx context.Context, pods []types.NamespacedName) ([]string, error) {
	var nodes []string
	for _, key := range pods {
		var pod corev1.Pod
		if err := r.Client.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, fmt.Errorf("get pod %s: %w", key, err)
		}
		if pod.Spec.NodeName != "" {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}
