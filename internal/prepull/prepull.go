// Package prepull makes the ImagePullJobs by which controllers pull images on the nodes of pods before containers are updated.
// The callers decide which images are pulled on which nodes, and what follows from the result.
package prepull

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
)

// parallel is the number of nodes that pull an image at the same time.
const parallel = 50

// Pull is an image to pull.
type Pull struct {
	Namespace, Name string // of the ImagePullJob
	Owner           metav1.OwnerReference
	Image           string
	Nodes           []string
	Secrets         []string
	// Limit is how long the job may take, and Kept how long it is kept after its end.
	Limit, Kept time.Duration
}

// Job returns the ImagePullJob for a pull.
func (p *Pull) Job() *v1beta1.ImagePullJob {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, OwnerReferences: []metav1.OwnerReference{p.Owner}}}
	job.Spec.Image, job.Spec.PullSecrets = p.Image, p.Secrets
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: p.Nodes}
	job.Spec.Parallelism = new(intstr.FromInt32(parallel))
	job.Spec.CompletionPolicy = v1beta1.CompletionPolicy{
		Type: v1beta1.CompletionAlways, ActiveDeadlineSeconds: new(int64(p.Limit / time.Second)),
		TTLSecondsAfterFinished: new(int32(p.Kept / time.Second)), //nolint:gosec // an hour at most
	}
	return job
}

// Ended reports whether a job has ended, or should have ended within a limit. A node without the image then pulls it when
// the container is replaced.
func Ended(job *v1beta1.ImagePullJob, limit time.Duration, now time.Time) bool {
	late := !job.CreationTimestamp.IsZero() && now.Sub(job.CreationTimestamp.Time) > limit
	return job.Status.CompletionTime != nil || late
}

// Refused reports whether the API server has refused an ImagePullJob because of a missing permission, a quota or a
// rule. It would refuse another attempt too.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
