// Package choice decides which SidecarSets, and which of their revisions, are injected into a pod.
package choice

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Candidate is a SidecarSet that may select a pod, with the versions that could be injected.
type Candidate struct {
	SidecarSet *v1beta1.SidecarSet
	Selector   match.Selector
	// Latest is the version of the spec. Err says why it cannot be injected.
	Latest *inject.Set
	Err    error
	// Pinned is the revision named by spec.injectionStrategy.revision, or nil.
	Pinned *inject.Set
}

// Subject is the part of a pod on which the choice depends.
type Subject struct {
	Labels, Annotations map[string]string
	// Key decides which part of the pods a pod belongs to. It stays the same when a pod is created again with the same name.
	Key string
}

// Active reports whether the SidecarSet injects anything.
func Active(set *v1beta1.SidecarSet) bool {
	return !set.Spec.InjectionStrategy.Paused && set.DeletionTimestamp == nil
}

// InjectsLatest reports whether the webhook injects the latest revision into every selected pod that is created now. It
// does not if a policy injects, because the revision of the policy is not known, or if a revision is pinned for some
// pods.
func InjectsLatest(set *v1beta1.SidecarSet, latest string, history []*appsv1.ControllerRevision) bool {
	strategy := &set.Spec.InjectionStrategy
	if !Active(set) || strategy.Engine == v1beta1.EnginePolicy {
		return false
	}
	pinned := revision.Pinned(set, history)
	return strategy.Revision == nil || pinned != nil && pinned.Name == latest
}

// Choose returns the plan for a pod that all candidates select, and warnings.
func Choose(pod Subject, candidates []*Candidate) (inject.Plan, []string, error) {
	var plan inject.Plan
	var warnings []string
	skip := func(name, reason string) {
		if plan.Skipped == nil {
			plan.Skipped = map[string]string{}
		}
		plan.Skipped[name] = reason
	}
	var chosen []*Candidate
	for _, c := range candidates {
		out := optedOut(pod.Annotations[v1beta1.AnnotationSidecarInject], c.SidecarSet.Name)
		switch {
		case c.SidecarSet.Spec.InjectionStrategy.Engine == v1beta1.EnginePolicy:
			plan.Keep = append(plan.Keep, c.SidecarSet.Name)
		case out && slices.Contains(c.SidecarSet.Spec.InjectionStrategy.AllowedPodOverrides, v1beta1.OverrideOptOut):
			skip(c.SidecarSet.Name, "the pod's annotation "+v1beta1.AnnotationSidecarInject)
		default:
			if out {
				warnings = append(warnings, "SidecarSet "+c.SidecarSet.Name+" does not allow the annotation "+v1beta1.AnnotationSidecarInject+"; it has no effect")
			}
			chosen = append(chosen, c)
		}
	}
	replaced := bases(pod, chosen)
	for _, c := range chosen {
		if canary, ok := replaced[c.SidecarSet.Name]; ok {
			skip(c.SidecarSet.Name, "replaced by the canary "+canary)
			continue
		}
		set, err := c.version(pod)
		if err != nil {
			return inject.Plan{}, nil, err
		}
		if set == nil {
			skip(c.SidecarSet.Name, "the revision of spec.injectionStrategy.revision does not exist")
			continue
		}
		plan.Sets = append(plan.Sets, set)
	}
	return plan, warnings, nil
}

// optedOut reports whether the value excludes the name. It is "false", or a list such as "-log,-mesh".
func optedOut(value, name string) bool {
	if value == "false" {
		return true
	}
	for item := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(item) == "-"+name {
			return true
		}
	}
	return false
}

// bases returns the SidecarSets that are replaced by canaries in this pod, with their canaries. A canary without a
// version for the pod is not injected, so it replaces nothing.
func bases(pod Subject, candidates []*Candidate) map[string]string {
	replaced := map[string]string{}
	for _, c := range candidates {
		base := c.SidecarSet.Annotations[v1beta1.AnnotationSidecarSetBase]
		if c.SidecarSet.Annotations[v1beta1.AnnotationSidecarSetCanary] != "true" || base == "" {
			continue
		}
		if set, err := c.version(pod); set != nil || err != nil { // an error makes the pod be refused later
			replaced[base] = c.SidecarSet.Name
		}
	}
	return replaced
}

// version returns the version that this pod gets, or nil for none.
func (c *Candidate) version(pod Subject) (*inject.Set, error) {
	pin := c.SidecarSet.Spec.InjectionStrategy.Revision
	if pin != nil && c.pinned(pod) {
		if c.Pinned != nil {
			return c.Pinned, nil
		}
		switch pin.MissingPolicy {
		case v1beta1.MissingSkip:
			return nil, nil
		case v1beta1.MissingFail:
			return nil, c.refuse("the revision of the SidecarSet's injectionStrategy.revision does not exist, and its missingPolicy is Fail")
		}
	}
	if c.Err != nil {
		return nil, c.refuse("the SidecarSet is not valid: %v", c.Err)
	}
	return c.Latest, nil
}

func (c *Candidate) refuse(format string, args ...any) error {
	return &inject.Refusal{SidecarSet: c.SidecarSet.Name, Field: "spec", Message: fmt.Sprintf(format, args...)}
}

// pinned reports whether this pod gets the pinned revision instead of the latest one.
func (c *Candidate) pinned(pod Subject) bool {
	strategy := &c.SidecarSet.Spec.UpdateStrategy
	if strategy.Paused || c.SidecarSet.Spec.InjectionStrategy.Revision.Policy != v1beta1.RevisionPartial {
		return true
	}
	if strategy.Selector != nil {
		selector, err := foreign.Selector(strategy.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return bucket(c.SidecarSet.Name, pod.Key) < percentage(strategy.Partition)
}

// percentage returns the percentage of pods that keep the old version; an absolute number counts as 0.
func percentage(partition *intstr.IntOrString) int {
	if partition == nil || partition.Type != intstr.String {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSuffix(partition.StrVal, "%"))
	if err != nil {
		return 0
	}
	return n
}

// bucket returns a number from 0 to 99 that only depends on the SidecarSet and the pod.
func bucket(set, key string) int {
	sum := fnv.New64a()
	sum.Write([]byte(set + "\x00" + key))
	n := sum.Sum64()
	n ^= n >> 33 // the low bits of FNV alone are not evenly distributed
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	return int(n % 100)
}
