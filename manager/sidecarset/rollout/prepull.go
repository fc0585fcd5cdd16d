package rollout

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

// prePull has the new images pulled on the nodes of the pods before the first container is stopped. It returns when to look
// again; zero if the update can go on. Failed pulls do not hold it up: maxUnavailable does.
func (r *reconciler) prePull(ctx context.Context, s *set) (time.Time, error) {
	if !r.PrePull || s.object.Spec.UpdateStrategy.PrePullPolicy != v1beta1.PrePullAlways || s.pulled {
		return time.Time{}, nil
	}
	var unfinished bool
	var faults []error
	for _, image := range s.target.Images() {
		done, err := r.pull(ctx, s, image)
		unfinished = unfinished || !done
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return time.Time{}, err
	}
	if !unfinished {
		s.pulled = true
		return time.Time{}, nil
	}
	return r.Clock().Add(10 * time.Second), nil // the job's watch event comes sooner
}

// pull makes the ImagePullJob of an image, and reports whether it has ended.
func (r *reconciler) pull(ctx context.Context, s *set, image string) (bool, error) {
	sum := fnv.New64a()
	fmt.Fprint(sum, s.target.Revision, image)
	job := &v1beta1.ImagePullJob{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: fmt.Sprintf("%s-%x", s.object.Name, sum.Sum64())}
	err := r.client.Get(ctx, key, job)
	if err == nil {
		late := !job.CreationTimestamp.IsZero() && r.Clock().Sub(job.CreationTimestamp.Time) > pullLimit
		return job.Status.CompletionTime != nil || late, nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get ImagePullJob %s: %w", key.Name, err)
	}
	nodes, err := r.nodes(ctx, s)
	if err != nil || len(nodes) == 0 {
		return err == nil, err
	}
	job.Namespace, job.Name = key.Namespace, key.Name
	job.Labels = map[string]string{v1beta1.LabelSidecarSetName: s.object.Name}
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.object, v1beta1.GroupVersion().WithKind(v1beta1.KindSidecarSet))}
	job.Spec.Image = image
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: nodes}
	job.Spec.Parallelism = new(intstr.FromInt32(pullParallel))
	job.Spec.CompletionPolicy = v1beta1.CompletionPolicy{
		Type: v1beta1.CompletionAlways, ActiveDeadlineSeconds: new(int64(pullLimit / time.Second)), TTLSecondsAfterFinished: new(int32(pullKept)),
	}
	for _, secret := range s.object.Spec.ImagePullSecrets {
		job.Spec.PullSecrets = append(job.Spec.PullSecrets, secret.Name)
	}
	err = r.written("imagepulljobs", "create ImagePullJob "+key.Name, r.client.Create(ctx, job))
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return false, err
}

// nodes of all pods that are to be updated, sorted.
func (r *reconciler) nodes(ctx context.Context, s *set) ([]string, error) {
	s.mu.Lock()
	keys := s.fleet.Outdated()
	s.mu.Unlock()
	var nodes []string
	for _, key := range keys {
		var pod corev1.Pod
		if err := r.client.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy); err != nil {
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
