package inject

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/expression"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Set is a version of a SidecarSet, prepared for injection. It is immutable.
type Set struct {
	name    string
	spec    *v1beta1.SidecarSetSpec
	version annotation.Version
	// policies holds the policies of containers by name, and patterns of patchContainers by index.
	policies map[string]*expression.Policy
	patterns []*regexp.Regexp
}

// Compile prepares a version of a SidecarSet. revisionName, the name of its ControllerRevision, may be empty if it is
// not known. The error names the field.
func Compile(set *v1beta1.SidecarSet, revisionName string) (*Set, error) {
	s := &Set{name: set.Name, spec: &set.Spec, policies: map[string]*expression.Policy{}, version: annotation.Version{
		SidecarSet: set.Name, Revision: revisionName, Hashes: revision.HashesOf(&set.Spec), Sidecars: annotation.Sidecars(&set.Spec),
	}}
	for _, list := range []struct {
		field      string
		containers []v1beta1.SidecarContainer
	}{{"initContainers", set.Spec.InitContainers}, {"containers", set.Spec.Containers}} {
		for i := range list.containers {
			source := list.containers[i].ResourcesPolicy
			if source == nil {
				continue
			}
			p, err := expression.NewPolicy(source)
			if err != nil {
				return nil, fmt.Errorf("spec.%s[%d].resourcesPolicy.%w", list.field, i, err)
			}
			s.policies[list.containers[i].Name] = p
		}
	}
	for i, patch := range set.Spec.PatchContainers {
		pattern, err := regexp.Compile("^(?:" + patch.NameRegex + ")$")
		if patch.NameRegex == "" {
			pattern, err = regexp.MustCompile(""), nil
		}
		if err != nil {
			return nil, fmt.Errorf("spec.patchContainers[%d].nameRegex: %w", i, err)
		}
		s.patterns = append(s.patterns, pattern)
	}
	return s, nil
}

// Name returns the name of the SidecarSet.
func (s *Set) Name() string { return s.name }

func (s *Set) conflicts() v1beta1.ConflictPolicy {
	if s.spec.InjectionStrategy.ConflictPolicy == "" {
		return v1beta1.ConflictFail
	}
	return s.spec.InjectionStrategy.ConflictPolicy
}

func (s *Set) allows(override v1beta1.PodOverride) bool {
	return slices.Contains(s.spec.InjectionStrategy.AllowedPodOverrides, override)
}

// ContainerNames returns the names that a container of a SidecarSet has in pods.
func ContainerNames(c *v1beta1.SidecarContainer, init bool) []string {
	if hot(c, init) {
		return []string{c.Name + "-1", c.Name + "-2"}
	}
	return []string{c.Name}
}

// hot reports whether a container has hot upgrades. Init containers that run once do not.
func hot(c *v1beta1.SidecarContainer, init bool) bool {
	return c.UpgradeStrategy.UpgradeType == v1beta1.HotUpgrade && (!init || revision.Native(c))
}

// declares reports whether the SidecarSet has a container with this name in pods.
func (s *Set) declares(name string) bool {
	for i := range s.spec.Containers {
		if slices.Contains(ContainerNames(&s.spec.Containers[i], false), name) {
			return true
		}
	}
	for i := range s.spec.InitContainers {
		if slices.Contains(ContainerNames(&s.spec.InitContainers[i], true), name) {
			return true
		}
	}
	return false
}

func (s *Set) volume(name string) *corev1.Volume {
	for i := range s.spec.Volumes {
		if s.spec.Volumes[i].Name == name {
			return &s.spec.Volumes[i]
		}
	}
	return nil
}
