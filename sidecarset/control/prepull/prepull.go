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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/prepull"
)

const (
	// pullLimit is how long an update waits for its images.
	pullLimit = 10 * time.Minute
	// pullKept is how long an ImagePullJob is kept after its end.
	pullKept = time.Hour
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
		all = all && (done || prepull.Refused(err))
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

func (r *Puller) pull(ctx context.Context, set *v1beta1.SidecarSet, revision, image string, pods func() []types.NamespacedName) (bool, error) {
	sum := fnv.New64a()
	fmt.Fprint(sum, revision, image)
	job := &v1beta1.ImagePullJob{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: fmt.Sprintf("%s-%x", set.Name, sum.Sum64())}
	err := r.Client.Get(ctx, key, job)
	if err == nil {
		return prepull.Ended(job, pullLimit, r.Clock()), nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get ImagePullJob %s: %w", key.Name, err)
	}
	nodes, err := r.nodes(ctx, pods())
	if err != nil || len(nodes) == 0 {
		return err == nil, err
	}
	wanted := prepull.Pull{
		Namespace: key.Namespace, Name: key.Name, Owner: *metav1.NewControllerRef(set, v1beta1.GroupVersion().WithKind(v1beta1.KindSidecarSet)),
		Image: image, Nodes: nodes, Limit: pullLimit, Kept: pullKept,
	}
	for _, secret := range set.Spec.ImagePullSecrets {
		wanted.Secrets = append(wanted.Secrets, secret.Name)
	}
	job = wanted.Job()
	job.Labels = map[string]string{v1beta1.LabelSidecarSetName: set.Name}
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
