package entry

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/internal/recheck"
)

// Prune removes entries and outcomes that no job needs from a NodeImage: entries whose jobs are gone or have ended before
// their pull, which cancels a pull in progress, and finished entries whose TTL has expired and that no job still
// counts. job looks up a job by its reference, and returns nil if it is gone. Entries without owners belong to other
// controllers, and are only removed when their TTL has expired. again is when to call Prune next.
func Prune(node *v1beta1.NodeImage, job func(corev1.ObjectReference) *v1beta1.ImagePullJob, now time.Time) (changed bool, again recheck.At) {
	p := pruning{status: &node.Status, job: job, now: now}
	spec := &node.Spec
	for name := range spec.Images {
		before := spec.Images[name]
		after := *before.DeepCopy()
		after.Tags = after.Tags[:0]
		for i := range before.Tags {
			if tag := before.Tags[i].DeepCopy(); p.keep(image.Reference{Repository: name, Tag: tag.Tag}, tag) {
				after.Tags = append(after.Tags, *tag)
			}
		}
		switch {
		case len(after.Tags) == 0:
			delete(spec.Images, name)
			changed = true
			continue
		case slices.ContainsFunc(after.Tags, func(tag v1beta1.ImageTagSpec) bool { return len(tag.Namespaces) > 0 }):
			share(&after)
		}
		if !equality.Semantic.DeepEqual(before, after) {
			spec.Images[name] = after
			changed = true
		}
	}
	changed = p.pruneRecords(node, changed) || changed
	return changed, p.again
}

type pruning struct {
	status *v1beta1.NodeImageStatus
	job    func(corev1.ObjectReference) *v1beta1.ImagePullJob
	now    time.Time
	again  recheck.At
}

// keep removes what is not needed from a tag, and reports whether anything is left.
func (p *pruning) keep(reference image.Reference, tag *v1beta1.ImageTagSpec) bool {
	said := image.TagStatus(p.status, reference)
	ended := said != nil && said.Version == tag.Version && said.CompletionTime != nil
	if len(tag.OwnerReferences) == 0 {
		return !ended || !p.expired(said.CompletionTime.Time, tag.PullPolicy)
	}
	owners := map[string][]corev1.ObjectReference{}
	for _, o := range tag.OwnerReferences {
		owners[o.Namespace] = append(owners[o.Namespace], o)
	}
	var left []corev1.ObjectReference
	for namespace, of := range owners {
		owners[namespace] = p.wanting(tag, said, namespace, of)
	}
	for _, o := range tag.OwnerReferences { // keeps their order
		if slices.Contains(owners[o.Namespace], o) {
			left = append(left, o)
		}
	}
	tag.OwnerReferences = left
	tag.Namespaces = slices.DeleteFunc(tag.Namespaces, func(is v1beta1.ImageNamespaceSpec) bool { return len(owners[is.Namespace]) == 0 })
	if len(left) == 0 {
		return false
	}
	if !ended {
		p.updatePolicy(left, &tag.Version, &tag.ImagePullPolicy, &tag.PullPolicy)
	}
	for i := range tag.Namespaces {
		is := &tag.Namespaces[i]
		if _, over := endOf(tag, said, is.Namespace); !over {
			p.updatePolicy(owners[is.Namespace], &is.Version, &is.ImagePullPolicy, &is.PullPolicy)
		}
		p.removeUnneeded(owners[is.Namespace], is)
	}
	return true
}

// endOf returns when the pull of a tag for a namespace ended, and false if it has not ended.
func endOf(tag *v1beta1.ImageTagSpec, said *v1beta1.ImageTagStatus, namespace string) (at time.Time, ended bool) {
	version := tag.Version
	if is := image.NamespaceSpec(tag, namespace); is != nil {
		version = is.Version
	}
	of := image.NamespaceStatus(said, namespace)
	if of == nil || of.Version != version || of.CompletionTime == nil {
		return time.Time{}, false
	}
	return of.CompletionTime.Time, true
}

// wanting returns the jobs of a namespace that still need a pull. It returns none if the TTL of the pull has expired.
func (p *pruning) wanting(tag *v1beta1.ImageTagSpec, said *v1beta1.ImageTagStatus, namespace string, owners []corev1.ObjectReference) []corev1.ObjectReference {
	at, ended := endOf(tag, said, namespace)
	var left []corev1.ObjectReference
	counted := false
	for _, o := range owners {
		j := p.job(o)
		if j == nil || j.UID != o.UID || (j.Status.CompletionTime != nil && !ended) {
			continue
		}
		left = append(left, o)
		counted = counted || (j.Status.CompletionTime == nil && j.Spec.CompletionPolicy.Type != v1beta1.CompletionNever)
	}
	policy := tag.PullPolicy
	if is := image.NamespaceSpec(tag, namespace); is != nil {
		policy = is.PullPolicy
	}
	if ended && !counted && p.expired(at, policy) {
		return nil
	}
	return left
}

// expired reports whether the TTL of a finished pull has expired, and otherwise records when it will.
func (p *pruning) expired(ended time.Time, policy *v1beta1.ImageTagPullPolicy) bool {
	if policy == nil || policy.TTLSecondsAfterFinished == nil {
		return false
	}
	end := ended.Add(time.Duration(*policy.TTLSecondsAfterFinished) * time.Second)
	if !p.now.Before(end) {
		return true
	}
	p.again = p.again.Or(end)
	return false
}

// updatePolicy sets the policy of an unfinished pull to the policy of the jobs that still need it.
func (p *pruning) updatePolicy(owners []corev1.ObjectReference, version *int64, pull *v1beta1.ImagePullPolicy, policy **v1beta1.ImageTagPullPolicy) {
	always := *pull == v1beta1.PullAlways
	for i, owner := range owners {
		j := p.job(owner)
		if i == 0 {
			*policy, *pull = pullPolicy(j), j.Spec.ImagePullPolicy
			continue
		}
		*policy = morePatient(*policy, pullPolicy(j))
		if j.Spec.ImagePullPolicy == v1beta1.PullAlways {
			*pull = v1beta1.PullAlways
		}
	}
	if *pull == v1beta1.PullAlways && !always {
		*version++ // like join
	}
}

// removeUnneeded removes what only deleted jobs have requested, and records the version for jobs from before versions
// existed.
func (p *pruning) removeUnneeded(owners []corev1.ObjectReference, is *v1beta1.ImageNamespaceSpec) {
	needed := map[string]bool{}
	is.SandboxConfig = nil
	var versions []v1beta1.ImageJobVersion
	for _, owner := range owners {
		j := p.job(owner)
		for _, name := range j.Spec.PullSecrets {
			needed[SecretCopy(is.Namespace, name)] = true
		}
		if j.Spec.SandboxConfig != nil {
			is.SandboxConfig = j.Spec.SandboxConfig
		}
		asked := v1beta1.ImageJobVersion{UID: owner.UID, Version: is.Version}
		if at := slices.IndexFunc(is.Jobs, func(v v1beta1.ImageJobVersion) bool { return v.UID == owner.UID }); at >= 0 {
			asked = is.Jobs[at]
		}
		versions = append(versions, asked)
	}
	is.Jobs = versions
	is.PullSecrets = slices.DeleteFunc(is.PullSecrets, func(s v1beta1.ReferenceObject) bool { return !needed[s.Name] })
}
