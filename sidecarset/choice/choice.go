// Package choice decides which SidecarSets, and which of their revisions, are injected into a pod.
package choice

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Candidate is a SidecarSet that may select a pod, with what could be injected.
type Candidate struct {
	SidecarSet *v1beta1.SidecarSet
	Selector   match.Selector
	// Latest is the version of the spec; Err is why it cannot be injected.
	Latest *inject.Set
	Err    error
	// Pinned is the revision that spec.injectionStrategy.revision names; nil if there is none.
	Pinned *inject.Set
}

// Subject is what the choice depends on of a pod.
type Subject struct {
	Labels, Annotations map[string]string
	// Key is what a part of the pods is chosen by: it stays the same when a pod is created again under its name.
	Key string
}

// Active reports whether the SidecarSet injects anything at all.
func Active(set *v1beta1.SidecarSet) bool {
	return !set.Spec.InjectionStrategy.Paused && set.DeletionTimestamp == nil
}

// InjectsLatest reports whether every pod that is created now and that the SidecarSet selects gets its latest revision from the
// webhook. With a policy nobody knows of which revision that is, with a pinned revision some pods get another one.
func InjectsLatest(set *v1beta1.SidecarSet, latest string, history []*appsv1.ControllerRevision) bool {
	strategy := &set.Spec.InjectionStrategy
	if !Active(set) || strategy.Engine == v1beta1.EnginePolicy {
		return false
	}
	pinned := revision.Pinned(set, history)
	return strategy.Revision == nil || pinned != nil && pinned.Name == latest
}

// Choose makes the plan for a pod that all candidates select.
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

// optedOut reads "false", or a list such as "-log,-mesh".
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

// bases are the SidecarSets that canaries take the place of in this pod, with the canaries. A canary without a version for the pod
// is not injected, so it takes no place.
func bases(pod Subject, candidates []*Candidate) map[string]string {
	replaced := map[string]string{}
	for _, c := range candidates {
		base := c.SidecarSet.Annotations[v1beta1.AnnotationSidecarSetBase]
		if c.SidecarSet.Annotations[v1beta1.AnnotationSidecarSetCanary] != "true" || base == "" {
			continue
		}
		if set, err := c.version(pod); set != nil || err != nil { // the pod is refused for the latter
			replaced[base] = c.SidecarSet.Name
		}
	}
	return replaced
}

// version is the one that this pod gets; nil for none.
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

// pinned reports whether this pod gets the pinned revision and not the latest.
func (c *Candidate) pinned(pod Subject) bool {
	strategy := &c.SidecarSet.Spec.UpdateStrategy
	if strategy.Paused || c.SidecarSet.Spec.InjectionStrategy.Revision.Policy != v1beta1.RevisionPartial {
		return true
	}
	if strategy.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(strategy.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return bucket(c.SidecarSet.Name, pod.Key) < percentage(strategy.Partition)
}

// percentage of pods that keep the old version; a number counts as 0.
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

// bucket is a number from 0 to 99 that depends on nothing but the SidecarSet and the pod.
func bucket(set, key string) int {
	sum := fnv.New64a()
	sum.Write([]byte(set + "\x00" + key))
	n := sum.Sum64()
	n ^= n >> 33 // the low bits of FNV alone are not evenly distributed
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	return int(n % 100)
}
