package image

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
)

// Want is one image that a node has to pull.
type Want struct {
	Reference
	// Version: the pull is done again when it changes.
	Version   int64
	CreatedAt time.Time
	// Always asks the registry even when the node has the image.
	Always bool
	// Timeout of one attempt.
	Timeout time.Duration
	// Retries after the first attempt.
	Retries int
	// Deadline of all attempts together, counted from the first; 0 for none.
	Deadline time.Duration
	Secrets  []v1beta1.ReferenceObject
	Sandbox  *v1beta1.SandboxConfig
	// Jobs that request the pull, as "namespace/name".
	Owners []string
}

// Wanted reads a NodeImage's spec, with defaults for what is left out, oldest first.
func Wanted(spec v1beta1.NodeImageSpec) []Want {
	var wants []Want
	for _, name := range slices.Sorted(maps.Keys(spec.Images)) {
		image := spec.Images[name]
		seen := map[string]bool{}
		for i := range image.Tags {
			tag := &image.Tags[i]
			if seen[tag.Tag] {
				continue // a CRD of OpenKruise does not refuse it
			}
			seen[tag.Tag] = true
			want := Want{
				Reference: Reference{Repository: name, Tag: tag.Tag}, Version: tag.Version,
				Always:  tag.ImagePullPolicy == v1beta1.PullAlways,
				Timeout: v1beta1.DefaultPullTimeoutSeconds * time.Second, Retries: v1beta1.DefaultPullBackoffLimit,
				Secrets: image.PullSecrets, Sandbox: image.SandboxConfig,
			}
			if tag.CreatedAt != nil {
				want.CreatedAt = tag.CreatedAt.Time
			}
			for _, owner := range tag.OwnerReferences {
				want.Owners = append(want.Owners, owner.Namespace+"/"+owner.Name)
			}
			want.bound(tag.PullPolicy)
			wants = append(wants, want)
		}
	}
	slices.SortStableFunc(wants, func(a, b Want) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return wants
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

// maxSeconds keeps durations from overflowing.
const maxSeconds = 1 << 31

// before orders pulls that wait: older requests first.
func before(a, b *Want) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Tag, b.Tag))
}
