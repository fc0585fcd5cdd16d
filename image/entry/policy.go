package entry

import (
	"time"

	"github.com/refit-project/refit/api/v1beta1"
)

// morePatient returns the more patient value of two policies for each field, so that no job ends the pull of another
// one early.
func morePatient(a, b *v1beta1.ImageTagPullPolicy) *v1beta1.ImageTagPullPolicy {
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

// bounded returns the value, or the default if it is missing or below the minimum.
func bounded(value *int32, least, byDefault int32) *int32 {
	if value == nil || *value < least {
		return &byDefault
	}
	return value
}

// longer returns the larger of two limits; nil means no limit.
func longer[T int32 | int64](a, b *T) *T {
	if a == nil || b == nil {
		return nil
	}
	return new(max(*a, *b))
}

// join adds a job's policy to the policy of a pull in progress for other jobs. For a job with policy Always it starts a
// new version, because the outcome under IfNotPresent does not count for it.
func join(version *int64, pull *v1beta1.ImagePullPolicy, policy **v1beta1.ImageTagPullPolicy, job *v1beta1.ImagePullJob) {
	*policy = morePatient(*policy, pullPolicy(job))
	if job.Spec.ImagePullPolicy == v1beta1.PullAlways && *pull != v1beta1.PullAlways {
		*pull = v1beta1.PullAlways
		*version++
	}
}

// pullPolicy returns the policy of an entry for a job. kruise-manager requires a TTL.
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
