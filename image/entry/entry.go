// Package entry adds the pulls of ImagePullJobs to the spec of a NodeImage, and removes those that no job needs any
// more. Namespaces share a NodeImage: each has its own policy, secrets and version of a pull, and its share of the
// space.
package entry

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

const (
	// neverInterval is the interval between pulls for a job that never completes.
	neverInterval = 24 * time.Hour
	// neverDeadline limits a pull for such a job.
	neverDeadline = 30 * time.Minute
	// keepFinished is how long a finished entry stays in a NodeImage after its jobs have ended.
	keepFinished = 5 * time.Minute
)

// SecretCopy returns the name of the copy of a pull secret. It is deterministic, and ends with a hash of the namespace
// and name.
func SecretCopy(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	return strings.TrimRight(name[:min(len(name), 200)], ".-") + "-" + hex.EncodeToString(sum[:6])
}

// Request adds a job's image to a NodeImage, with the copies of its pull secrets. If the namespace exceeds its share, it
// removes finished pulls of the namespace and records their outcomes. If there is no space, it removes pulls of namespaces
// that use more than the job's namespace; their jobs then wait for space. If there is still no space, it changes nothing
// and returns false.
func Request(node *v1beta1.NodeImage, job *v1beta1.ImagePullJob, secrets []v1beta1.ReferenceObject, now time.Time) bool {
	with, full := request(node, job, secrets, now)
	if full != "" || with == nil {
		return false
	}
	node.Spec, node.Annotations = with.Spec, with.Annotations
	return true
}

// Full returns why a NodeImage has no space for a pull of a job, or "" if it has.
func Full(node *v1beta1.NodeImage, job *v1beta1.ImagePullJob) string {
	var secrets []v1beta1.ReferenceObject
	for _, name := range job.Spec.PullSecrets {
		secrets = append(secrets, v1beta1.ReferenceObject{Name: SecretCopy(job.Namespace, name)})
	}
	_, full := request(node, job, secrets, time.Time{})
	return full
}

// request returns the NodeImage with the job's image, and why there is no space for it. The result shares unchanged parts
// with the given object.
func request(node *v1beta1.NodeImage, job *v1beta1.ImagePullJob, secrets []v1beta1.ReferenceObject, now time.Time) (*v1beta1.NodeImage, string) {
	reference, err := image.Parse(job.Spec.Image)
	if err != nil {
		return nil, ""
	}
	with := add(node, reference, job, secrets, now)
	if all, _ := shareOf(with, job.Namespace); all > maxShare {
		if smaller, removed := compacted(node, job.Namespace); removed {
			with = add(smaller, reference, job, secrets, now)
		}
	}
	forget(with, job)
	return with, makeRoom(&with.Spec, reference, job.Namespace)
}

// add returns a copy of a NodeImage with the job's image.
func add(node *v1beta1.NodeImage, reference image.Reference, job *v1beta1.ImagePullJob, secrets []v1beta1.ReferenceObject, now time.Time) *v1beta1.NodeImage {
	with := copyOf(node)
	before := with.Spec.Images[reference.Repository]
	repository := *before.DeepCopy()
	said := image.TagStatus(&node.Status, reference)
	tag := addTag(&repository, said, reference, job, now)
	addNamespace(tag, said, job, secrets, now)
	tag.OwnerReferences = append(tag.OwnerReferences, corev1.ObjectReference{
		APIVersion: v1beta1.GroupVersion().String(), Kind: v1beta1.KindImagePullJob, Namespace: job.Namespace, Name: job.Name, UID: job.UID,
	})
	share(&repository)
	with.Spec.Images[reference.Repository] = repository
	return with
}

// addTag finds or adds the tag, with the fields that a kruise-daemon reads.
func addTag(repository *v1beta1.ImageSpec, said *v1beta1.ImageTagStatus, reference image.Reference, job *v1beta1.ImagePullJob, now time.Time) *v1beta1.ImageTagSpec {
	at := slices.IndexFunc(repository.Tags, func(tag v1beta1.ImageTagSpec) bool { return tag.Tag == reference.Tag })
	added := at < 0
	if added {
		at = len(repository.Tags)
		repository.Tags = append(repository.Tags, v1beta1.ImageTagSpec{Tag: reference.Tag})
	}
	tag := &repository.Tags[at]
	joined := len(tag.OwnerReferences) > 0
	switch {
	case added && said != nil: // the daemon has not yet seen that an earlier entry was removed
		tag.Version = said.Version + 1
	case said != nil && said.Version == tag.Version && (said.Phase == v1beta1.ImagePhaseSucceeded || said.Phase == v1beta1.ImagePhaseFailed):
		tag.Version++ // the earlier outcome does not apply to this job
		joined = false
	}
	tag.CreatedAt = seconds(now)
	if joined {
		join(&tag.Version, &tag.ImagePullPolicy, &tag.PullPolicy, job)
	} else {
		tag.ImagePullPolicy, tag.PullPolicy = job.Spec.ImagePullPolicy, pullPolicy(job)
	}
	return tag
}

// addNamespace adds the job to the pull for its namespace.
func addNamespace(tag *v1beta1.ImageTagSpec, tagSaid *v1beta1.ImageTagStatus, job *v1beta1.ImagePullJob, secrets []v1beta1.ReferenceObject, now time.Time) {
	said := image.NamespaceStatus(tagSaid, job.Namespace)
	is := image.NamespaceSpec(tag, job.Namespace)
	switch {
	case is == nil:
		tag.Namespaces = append(tag.Namespaces, v1beta1.ImageNamespaceSpec{
			Namespace: job.Namespace, CreatedAt: seconds(now), ImagePullPolicy: job.Spec.ImagePullPolicy, PullPolicy: pullPolicy(job),
		})
		is = &tag.Namespaces[len(tag.Namespaces)-1]
		if said != nil {
			is.Version = said.Version + 1
		}
	case said != nil && said.Version == is.Version && (said.Phase == v1beta1.ImagePhaseSucceeded || said.Phase == v1beta1.ImagePhaseFailed):
		is.Version++
		is.CreatedAt, is.ImagePullPolicy, is.PullPolicy = seconds(now), job.Spec.ImagePullPolicy, pullPolicy(job)
	default:
		join(&is.Version, &is.ImagePullPolicy, &is.PullPolicy, job)
	}
	is.Jobs = append(is.Jobs, v1beta1.ImageJobVersion{UID: job.UID, Version: is.Version})
	for _, secret := range secrets {
		if !contains(is.PullSecrets, secret.Name) {
			is.PullSecrets = append(is.PullSecrets, secret)
		}
	}
	if job.Spec.SandboxConfig != nil {
		is.SandboxConfig = job.Spec.SandboxConfig.DeepCopy()
	}
}

func contains(secrets []v1beta1.ReferenceObject, name string) bool {
	return slices.ContainsFunc(secrets, func(s v1beta1.ReferenceObject) bool { return s.Name == name })
}

// share sets the fields that all tags of a repository share, for a kruise-daemon and for OpenKruise's CRD: the secrets
// of all namespaces, which refit-daemon keeps separate, and the sandbox configuration if there is only one namespace.
func share(repository *v1beta1.ImageSpec) {
	names := map[string]bool{}
	others := false // there are entries written by other clients, with what they need
	var secrets []v1beta1.ReferenceObject
	var sandbox *v1beta1.SandboxConfig
	for i := range repository.Tags {
		tag := &repository.Tags[i]
		others = others || len(tag.Namespaces) == 0
		for _, owner := range tag.OwnerReferences {
			names[owner.Namespace] = true
		}
		for _, is := range tag.Namespaces {
			for _, secret := range is.PullSecrets {
				if !contains(secrets, secret.Name) {
					secrets = append(secrets, secret)
				}
			}
			if is.SandboxConfig != nil {
				sandbox = is.SandboxConfig
			}
		}
	}
	if others {
		for _, secret := range repository.PullSecrets {
			if !contains(secrets, secret.Name) {
				secrets = append(secrets, secret)
			}
		}
		if sandbox == nil {
			sandbox = repository.SandboxConfig
		}
	}
	if len(names) > 1 {
		sandbox = nil
	}
	repository.PullSecrets, repository.SandboxConfig = secrets, sandbox.DeepCopy()
}

func seconds(t time.Time) *metav1.Time { return &metav1.Time{Time: time.Unix(t.Unix(), 0).UTC()} }
