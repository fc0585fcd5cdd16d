package image

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
)

// patient is the more patient of two policies in each of their fields, so that no job ends the pull of another one early.
func patient(a, b *v1beta1.ImageTagPullPolicy) *v1beta1.ImageTagPullPolicy {
	if a == nil || b == nil {
		return &v1beta1.ImageTagPullPolicy{}
	}
	return &v1beta1.ImageTagPullPolicy{
		TimeoutSeconds:          longer(bounded(a.TimeoutSeconds, 1, v1beta1.DefaultPullTimeoutSeconds), bounded(b.TimeoutSeconds, 1, v1beta1.DefaultPullTimeoutSeconds)),
		BackoffLimit:            longer(bounded(a.BackoffLimit, 0, v1beta1.DefaultPullBackoffLimit), bounded(b.BackoffLimit, 0, v1beta1.DefaultPullBackoffLimit)),
		TTLSecondsAfterFinished: longer(a.TTLSecondsAfterFinished, b.TTLSecondsAfterFinished),
		ActiveDeadlineSeconds:   longer(a.ActiveDeadlineSeconds, b.ActiveDeadlineSeconds),
	}
}

// bounded is the default for what is left out or less than the least.
func bounded(value *int32, least, byDefault int32) *int32 {
	if value == nil || *value < least {
		return &byDefault
	}
	return value
}

// longer is the larger of two limits; none is larger than any.
func longer[T int32 | int64](a, b *T) *T {
	if a == nil || b == nil {
		return nil
	}
	return new(max(*a, *b))
}

// join adds a job's policy to that of a pull that is under way for others. What was done under IfNotPresent is no outcome for a
// job that asks for Always, which begins another version.
func join(tag *v1beta1.ImageTagSpec, job *v1beta1.ImagePullJob) {
	tag.PullPolicy = patient(tag.PullPolicy, pullPolicy(job))
	if job.Spec.ImagePullPolicy == v1beta1.PullAlways && tag.ImagePullPolicy != v1beta1.PullAlways {
		tag.ImagePullPolicy = v1beta1.PullAlways
		tag.Version++
	}
}

// settle makes the policy of a pull that has not ended that of the jobs that still want it. It reports a change.
func settle(tag *v1beta1.ImageTagSpec, job func(corev1.ObjectReference) *v1beta1.ImagePullJob) bool {
	before := tag.DeepCopy()
	always := tag.ImagePullPolicy == v1beta1.PullAlways
	tag.PullPolicy = nil
	for i, owner := range tag.OwnerReferences {
		j := job(owner)
		if i == 0 {
			tag.PullPolicy, tag.ImagePullPolicy = pullPolicy(j), j.Spec.ImagePullPolicy
			continue
		}
		tag.PullPolicy = patient(tag.PullPolicy, pullPolicy(j))
		if j.Spec.ImagePullPolicy == v1beta1.PullAlways {
			tag.ImagePullPolicy = v1beta1.PullAlways
		}
	}
	if tag.ImagePullPolicy == v1beta1.PullAlways && !always {
		tag.Version++ // as join
	}
	return !equality.Semantic.DeepEqual(before, tag)
}
