package image

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

const (
	// neverInterval is after how long a job that never completes has its image pulled again.
	neverInterval = 24 * time.Hour
	// neverDeadline bounds a pull of such a job.
	neverDeadline = 30 * time.Minute
	// keepFinished is how long an entry that has ended stays in a NodeImage after its jobs have.
	keepFinished = 5 * time.Minute
)

// full says why a NodeImage's spec cannot take a pull for a further job; empty: it can. The API server refuses a spec with more.
func full(spec *v1beta1.NodeImageSpec, reference Reference) string {
	image, exists := spec.Images[reference.Repository]
	tag := TagSpec(spec, reference)
	switch {
	case !exists && len(spec.Images) >= v1beta1.MaxNodeImages:
		return fmt.Sprintf("%d images", len(spec.Images))
	case exists && tag == nil && len(image.Tags) >= v1beta1.MaxImageTags:
		return fmt.Sprintf("%d tags of %s", len(image.Tags), reference.Repository)
	case tag != nil && len(tag.OwnerReferences) >= v1beta1.MaxTagOwners:
		return fmt.Sprintf("%d jobs for %s", len(tag.OwnerReferences), reference)
	}
	return ""
}

// Request adds a job's image to a NodeImage's spec. It reports false when there is no room.
func Request(spec *v1beta1.NodeImageSpec, status *v1beta1.NodeImageStatus, job *v1beta1.ImagePullJob, secrets []v1beta1.ReferenceObject, now time.Time) bool {
	reference, err := Parse(job.Spec.Image)
	if err != nil || full(spec, reference) != "" {
		return false
	}
	image := spec.Images[reference.Repository]
	for _, s := range secrets {
		if !slices.Contains(image.PullSecrets, s) {
			image.PullSecrets = append(image.PullSecrets, s)
		}
	}
	if job.Spec.SandboxConfig != nil {
		image.SandboxConfig = job.Spec.SandboxConfig.DeepCopy()
	}
	tag, said := TagSpec(spec, reference), TagStatus(status, reference)
	joined := tag != nil && len(tag.OwnerReferences) > 0
	switch {
	case tag == nil:
		image.Tags = append(image.Tags, v1beta1.ImageTagSpec{Tag: reference.Tag})
		tag = &image.Tags[len(image.Tags)-1]
		if said != nil { // of an entry that has been removed, which the daemon has not seen yet
			tag.Version = said.Version + 1
		}
	case said != nil && said.Version == tag.Version && (said.Phase == v1beta1.ImagePhaseSucceeded || said.Phase == v1beta1.ImagePhaseFailed):
		tag.Version++ // what ended before is not this job's
		joined = false
	}
	tag.CreatedAt = seconds(now)
	if joined {
		join(tag, job)
	} else {
		tag.ImagePullPolicy, tag.PullPolicy = job.Spec.ImagePullPolicy, pullPolicy(job)
	}
	tag.OwnerReferences = append(tag.OwnerReferences, corev1.ObjectReference{
		APIVersion: v1beta1.GroupVersion().String(), Kind: v1beta1.KindImagePullJob, Namespace: job.Namespace, Name: job.Name, UID: job.UID,
	})
	if spec.Images == nil {
		spec.Images = map[string]v1beta1.ImageSpec{}
	}
	spec.Images[reference.Repository] = image
	return true
}

// pullPolicy of an entry. A kruise-manager requires a time to live.
func pullPolicy(job *v1beta1.ImagePullJob) *v1beta1.ImageTagPullPolicy {
	policy := &v1beta1.ImageTagPullPolicy{TimeoutSeconds: new(int32(v1beta1.DefaultPullTimeoutSeconds)), BackoffLimit: new(int32(v1beta1.DefaultPullBackoffLimit))}
	if p := job.Spec.PullPolicy; p != nil && p.TimeoutSeconds != nil {
		policy.TimeoutSeconds = p.TimeoutSeconds
	}
	if p := job.Spec.PullPolicy; p != nil && p.BackoffLimit != nil {
		policy.BackoffLimit = p.BackoffLimit
	}
	if job.Spec.CompletionPolicy.Type == v1beta1.CompletionNever {
		policy.TTLSecondsAfterFinished = new(int32(neverInterval / time.Second))
		policy.ActiveDeadlineSeconds = new(max(int64(neverDeadline/time.Second), int64(*policy.TimeoutSeconds)))
		return policy
	}
	policy.TTLSecondsAfterFinished = new(int32(keepFinished / time.Second))
	policy.ActiveDeadlineSeconds = job.Spec.CompletionPolicy.ActiveDeadlineSeconds
	return policy
}

// Prune removes from a NodeImage's spec what no job wants any more: entries whose jobs are gone or have ended without them,
// which cancels a pull under way, and entries that have ended when their time to live is over and no job still counts them.
// job finds a job by its reference; nil if it is gone. Entries without owners belong to other controllers, and only time removes
// them. Again is when to look next; zero: not before a change.
func Prune(spec *v1beta1.NodeImageSpec, status *v1beta1.NodeImageStatus, job func(corev1.ObjectReference) *v1beta1.ImagePullJob, now time.Time) (changed bool, again time.Time) {
	for name, image := range spec.Images {
		kept := image.Tags[:0:0]
		for _, tag := range image.Tags {
			said := TagStatus(status, Reference{Repository: name, Tag: tag.Tag})
			ended := said != nil && said.Version == tag.Version && said.CompletionTime != nil
			owned, owners, counted := len(tag.OwnerReferences) > 0, tag.OwnerReferences[:0:0], false
			for _, o := range tag.OwnerReferences {
				j := job(o)
				if j == nil || j.UID != o.UID || (j.Status.CompletionTime != nil && !ended) {
					continue
				}
				owners = append(owners, o)
				counted = counted || (j.Status.CompletionTime == nil && j.Spec.CompletionPolicy.Type != v1beta1.CompletionNever)
			}
			if owned && len(owners) == 0 {
				changed = true
				continue
			}
			if p := tag.PullPolicy; ended && !counted && p != nil && p.TTLSecondsAfterFinished != nil {
				over := said.CompletionTime.Add(time.Duration(*p.TTLSecondsAfterFinished) * time.Second)
				if !now.Before(over) {
					changed = true
					continue
				}
				if again.IsZero() || over.Before(again) {
					again = over
				}
			}
			changed = changed || len(owners) != len(tag.OwnerReferences)
			tag.OwnerReferences = owners
			if owned && !ended {
				changed = settle(&tag, job) || changed
			}
			kept = append(kept, tag)
		}
		if image.Tags = kept; len(kept) == 0 {
			delete(spec.Images, name)
		} else {
			spec.Images[name] = image
		}
	}
	return changed, again
}
