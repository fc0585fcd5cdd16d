package image

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
)

// Target identifies one pull of a node: an image for the jobs of one namespace.
type Target struct {
	Reference
	// Namespace is the namespace of the jobs. It is empty for requests of other controllers.
	Namespace string
}

// Want is an image that a node has to pull for a namespace.
type Want struct {
	Target
	// Version is increased to pull the image again.
	Version   int64
	CreatedAt time.Time
	// Always says to ask the registry even if the node has the image.
	Always bool
	// Timeout limits one attempt.
	Timeout time.Duration
	// Retries is the number of attempts after the first one.
	Retries int
	// Deadline limits all attempts together, from the start of the first one; 0 means no limit.
	Deadline time.Duration
	// Secrets are the secrets of the namespace to use.
	Secrets []v1beta1.ReferenceObject
	Sandbox *v1beta1.SandboxConfig
	// Owners are the jobs that request the pull, as "namespace/name". Jobs maps UIDs of jobs to the versions that they
	// requested, if known.
	Owners []string
	Jobs   map[types.UID]int64
}

// Wanted returns the images in a NodeImage's spec, with defaults, oldest first.
func Wanted(spec v1beta1.NodeImageSpec) []Want {
	var wants []Want
	for _, name := range slices.Sorted(maps.Keys(spec.Images)) {
		image := spec.Images[name]
		seen := map[string]bool{}
		for i := range image.Tags {
			tag := &image.Tags[i]
			if seen[tag.Tag] {
				continue // OpenKruise's CRD accepts malformed references
			}
			seen[tag.Tag] = true
			for _, namespace := range namespaces(tag) {
				wants = append(wants, wanted(Reference{Repository: name, Tag: tag.Tag}, &image, tag, namespace))
			}
		}
	}
	slices.SortStableFunc(wants, func(a, b Want) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return wants
}

// namespaces returns the namespaces of the jobs of a tag, sorted. An entry without jobs belongs to the namespace "".
func namespaces(tag *v1beta1.ImageTagSpec) []string {
	names := make([]string, 0, 1)
	for _, owner := range tag.OwnerReferences {
		names = append(names, owner.Namespace)
	}
	if len(names) == 0 {
		return []string{""}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func wanted(reference Reference, image *v1beta1.ImageSpec, tag *v1beta1.ImageTagSpec, namespace string) Want {
	is := NamespaceSpec(tag, namespace)
	if is == nil {
		is = &v1beta1.ImageNamespaceSpec{
			Version: tag.Version, CreatedAt: tag.CreatedAt, ImagePullPolicy: tag.ImagePullPolicy, PullPolicy: tag.PullPolicy,
			PullSecrets: image.PullSecrets, SandboxConfig: image.SandboxConfig,
		}
	}
	want := Want{
		Target: Target{Reference: reference, Namespace: namespace}, Version: is.Version, Always: is.ImagePullPolicy == v1beta1.PullAlways,
		Timeout: v1beta1.DefaultPullTimeoutSeconds * time.Second, Retries: v1beta1.DefaultPullBackoffLimit,
		Secrets: is.PullSecrets, Sandbox: is.SandboxConfig,
	}
	if is.CreatedAt != nil {
		want.CreatedAt = is.CreatedAt.Time
	}
	for _, owner := range tag.OwnerReferences {
		if owner.Namespace == namespace {
			want.Owners = append(want.Owners, owner.Namespace+"/"+owner.Name)
		}
	}
	if len(is.Jobs) > 0 {
		want.Jobs = make(map[types.UID]int64, len(is.Jobs))
	}
	for _, job := range is.Jobs {
		want.Jobs[job.UID] = job.Version
	}
	want.bound(is.PullPolicy)
	return want
}

// TagSpec returns a tag of a spec, or nil.
func TagSpec(spec *v1beta1.NodeImageSpec, reference Reference) *v1beta1.ImageTagSpec {
	tags := spec.Images[reference.Repository].Tags
	for i := range tags {
		if tags[i].Tag == reference.Tag {
			return &tags[i]
		}
	}
	return nil
}

// NamespaceSpec returns the pull of a tag for a namespace, or nil if it is not listed.
func NamespaceSpec(tag *v1beta1.ImageTagSpec, namespace string) *v1beta1.ImageNamespaceSpec {
	for i := range tag.Namespaces {
		if tag.Namespaces[i].Namespace == namespace {
			return &tag.Namespaces[i]
		}
	}
	return nil
}

func (w *Want) bound(policy *v1beta1.ImageTagPullPolicy) {
	if policy == nil {
		return
	}
	if s := policy.TimeoutSeconds; s != nil && *s > 0 {
		w.Timeout = time.Duration(*s) * time.Second
	}
	if n := policy.BackoffLimit; n != nil && *n >= 0 {
		w.Retries = int(*n)
	}
	if s := policy.ActiveDeadlineSeconds; s != nil && *s > 0 {
		w.Deadline = time.Duration(min(*s, maxSeconds)) * time.Second
	}
}

// maxSeconds prevents overflows of durations.
const maxSeconds = 1 << 31
