// Package admission has the rules for SidecarSets that the schema of the CRD cannot express: rules between fields of
// different lists, and between SidecarSets.
package admission

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/podfields"
	"github.com/refit-project/refit/sidecarset/policy"
)

// Check returns the errors of a SidecarSet that is created or updated; old is nil if it is created. others are all
// SidecarSets of the cluster. It ignores conflicts with others that the old version already had, so that such a
// SidecarSet can still be changed.
func Check(set, old *v1beta1.SidecarSet, others []*v1beta1.SidecarSet) field.ErrorList {
	errs := checkNames(set, old)
	errs = append(errs, checkSelectors(&set.Spec, field.NewPath("spec"))...)
	errs = append(errs, checkContainers(&set.Spec, field.NewPath("spec"))...)
	errs = append(errs, checkPods(set, old)...)
	errs = append(errs, checkEmptyImages(set, old)...)
	errs = append(errs, checkMetadata(&set.Spec, field.NewPath("spec", "patchPodMetadata"))...)
	errs = append(errs, podfields.Check(set)...)
	errs = append(errs, checkCanary(set, old, others)...)
	errs = append(errs, checkEngine(set, old, others)...)
	errs = append(errs, checkPolicy(set, old)...)
	clashes := checkOthers(set, others)
	if old != nil {
		known := map[string]bool{}
		for _, err := range checkOthers(old, others) {
			known[err.Detail] = true
		}
		clashes = slices.DeleteFunc(clashes, func(err *field.Error) bool { return known[err.Detail] })
	}
	return append(errs, clashes...)
}

// checkNames checks the rules of Refit's CRDs for the name and the version, which are labels of ControllerRevisions,
// because OpenKruise's CRDs lack them. An existing SidecarSet that breaks the rules can still be changed.
func checkNames(set, old *v1beta1.SidecarSet) field.ErrorList {
	var errs field.ErrorList
	if old == nil && (len(set.Name) > validation.LabelValueMaxLength || strings.Contains(set.Name, ".")) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), set.Name, "must be at most 63 letters, digits and '-'"))
	}
	if version := set.Spec.CustomVersion; old == nil || old.Spec.CustomVersion != version {
		for _, message := range validation.IsValidLabelValue(version) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "customVersion"), version, message))
		}
	}
	return errs
}

func checkSelectors(spec *v1beta1.SidecarSetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	options := metav1validation.LabelSelectorValidationOptions{}
	if spec.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.Selector, options, at.Child("selector"))...)
	}
	if spec.NamespaceSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.NamespaceSelector, options, at.Child("namespaceSelector"))...)
	}
	if spec.UpdateStrategy.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.UpdateStrategy.Selector, options, at.Child("updateStrategy", "selector"))...)
	}
	if priority := spec.UpdateStrategy.PriorityStrategy; priority != nil {
		for i := range priority.WeightPriority {
			errs = append(errs, metav1validation.ValidateLabelSelector(&priority.WeightPriority[i].MatchSelector, options,
				at.Child("updateStrategy", "priorityStrategy", "weightPriority").Index(i).Child("matchSelector"))...)
		}
	}
	if _, err := inject.Compile(&v1beta1.SidecarSet{Spec: *spec}, ""); err != nil {
		errs = append(errs, field.Invalid(at, "", err.Error()))
	}
	return errs
}

// checkCanary checks that a canary replaces an existing base that the webhook injects and that is not a canary itself,
// and that it is not being rolled out. A canary that already has a base with engine Policy can still be changed.
func checkCanary(set, old *v1beta1.SidecarSet, others []*v1beta1.SidecarSet) field.ErrorList {
	if !isCanary(set) {
		return nil
	}
	at := field.NewPath("metadata", "annotations").Key(v1beta1.AnnotationSidecarSetBase)
	base := set.Annotations[v1beta1.AnnotationSidecarSetBase]
	if old != nil && isCanary(old) && old.Annotations[v1beta1.AnnotationSidecarSetBase] != base {
		return field.ErrorList{field.Invalid(at, base, "the base of a canary cannot be changed")}
	}
	var errs field.ErrorList
	switch found := slices.IndexFunc(others, func(s *v1beta1.SidecarSet) bool { return s.Name == base }); {
	case base == set.Name:
		errs = append(errs, field.Invalid(at, base, "a SidecarSet cannot be its own base"))
	case found < 0:
		errs = append(errs, field.NotFound(at, base))
	case isCanary(others[found]):
		errs = append(errs, field.Invalid(at, base, "the base is a canary itself"))
	case others[found].Spec.InjectionStrategy.Engine == v1beta1.EnginePolicy && (old == nil || !isCanary(old)):
		errs = append(errs, field.Invalid(at, base, "the base has engine Policy: its MutatingAdmissionPolicy also injects it into the pods that get the canary"))
	}
	if set.Spec.UpdateStrategy.Type != v1beta1.SidecarSetNotUpdate {
		errs = append(errs, field.Invalid(field.NewPath("spec", "updateStrategy", "type"), set.Spec.UpdateStrategy.Type, "must be NotUpdate in a canary"))
	}
	return errs
}

// checkPolicy checks that a policy can inject a SidecarSet with engine Policy. One that already had such a field with this engine can
// still be changed.
func checkPolicy(set, old *v1beta1.SidecarSet) field.ErrorList {
	if set.Spec.InjectionStrategy.Engine != v1beta1.EnginePolicy {
		return nil
	}
	errs := policy.Obstacles(set)
	if old == nil || old.Spec.InjectionStrategy.Engine != v1beta1.EnginePolicy {
		return errs
	}
	before := policy.Obstacles(old)
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return slices.ContainsFunc(before, func(had *field.Error) bool { return had.Error() == err.Error() })
	})
}

// checkEngine checks that a SidecarSet that gets engine Policy has no canary.
func checkEngine(set, old *v1beta1.SidecarSet, others []*v1beta1.SidecarSet) field.ErrorList {
	engine := set.Spec.InjectionStrategy.Engine
	if engine != v1beta1.EnginePolicy || old != nil && old.Spec.InjectionStrategy.Engine == engine {
		return nil
	}
	found := slices.IndexFunc(others, func(s *v1beta1.SidecarSet) bool { return replaces(s, set) })
	if found < 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "injectionStrategy", "engine"), engine,
		"SidecarSet "+others[found].Name+" is a canary of this one: a MutatingAdmissionPolicy also injects this one into the pods that get the canary")}
}

// isCanary reports whether a SidecarSet is a canary. Without a base it is an ordinary SidecarSet, as with OpenKruise.
func isCanary(set *v1beta1.SidecarSet) bool {
	return set.Annotations[v1beta1.AnnotationSidecarSetCanary] == "true" && set.Annotations[v1beta1.AnnotationSidecarSetBase] != ""
}

// checkOthers returns conflicts with SidecarSets that can select the same pod.
func checkOthers(set *v1beta1.SidecarSet, others []*v1beta1.SidecarSet) field.ErrorList {
	var errs field.ErrorList
	for _, other := range others {
		if other.Name == set.Name || replaces(set, other) || replaces(other, set) || !match.Overlap(&set.Spec, &other.Spec) {
			continue
		}
		errs = append(errs, clashes(set, other)...)
	}
	return errs
}

// replaces reports whether a is a canary of b. A pod never gets both.
func replaces(a, b *v1beta1.SidecarSet) bool {
	return isCanary(a) && a.Annotations[v1beta1.AnnotationSidecarSetBase] == b.Name
}

func clashes(set, other *v1beta1.SidecarSet) field.ErrorList {
	var errs field.ErrorList
	taken := map[string]bool{}
	for _, used := range names(&other.Spec) {
		taken[used.name] = true
	}
	for _, used := range names(&set.Spec) {
		if taken[used.name] {
			errs = append(errs, field.Invalid(used.at, used.name, fmt.Sprintf("SidecarSet %s, which can select the same pods, has a container %s", other.Name, used.name)))
		}
	}
	volumes, others := defaults.Completed(&set.Spec).Volumes, defaults.Completed(&other.Spec).Volumes
	for i := range volumes {
		for j := range others {
			a, b := &volumes[i], &others[j]
			if a.Name == b.Name && !reflect.DeepEqual(a, b) {
				errs = append(errs, field.Invalid(field.NewPath("spec", "volumes").Index(i), a.Name,
					fmt.Sprintf("SidecarSet %s, which can select the same pods, has another volume %s", other.Name, a.Name)))
			}
		}
	}
	if err := podfields.Clash(set, other); err != nil {
		errs = append(errs, err)
	}
	theirs := metadata(&other.Spec)
	for _, mine := range metadata(&set.Spec) {
		for _, their := range theirs {
			if mine.key != their.key || mine.label != their.label || compatible(mine.policy, their.policy) {
				continue
			}
			errs = append(errs, field.Invalid(mine.at, mine.key, fmt.Sprintf("SidecarSet %s, which can select the same pods, sets %s as well", other.Name, mine.key)))
		}
	}
	return errs
}

// compatible reports whether the order of two policies does not matter. With Retain the first one wins, so only two
// Retains or two merges are compatible.
func compatible(a, b v1beta1.PatchPolicy) bool {
	retain := func(p v1beta1.PatchPolicy) bool { return p == "" || p == v1beta1.PatchRetain }
	return retain(a) && retain(b) || a == v1beta1.PatchMergeJSON && b == v1beta1.PatchMergeJSON
}

// containerName is the name of a container in pods.
type containerName struct {
	name string
	at   *field.Path
}

func names(spec *v1beta1.SidecarSetSpec) []containerName {
	var list []containerName
	for i := range spec.InitContainers {
		for _, name := range inject.ContainerNames(&spec.InitContainers[i], true) {
			list = append(list, containerName{name, field.NewPath("spec", "initContainers").Index(i).Child("name")})
		}
	}
	for i := range spec.Containers {
		for _, name := range inject.ContainerNames(&spec.Containers[i], false) {
			list = append(list, containerName{name, field.NewPath("spec", "containers").Index(i).Child("name")})
		}
	}
	return list
}

// entry is an entry of patchPodMetadata.
type entry struct {
	key    string
	label  bool
	policy v1beta1.PatchPolicy
	at     *field.Path
}

func metadata(spec *v1beta1.SidecarSetSpec) []entry {
	var list []entry
	for i, patch := range spec.PatchPodMetadata {
		at := field.NewPath("spec", "patchPodMetadata").Index(i)
		for _, key := range slices.Sorted(maps.Keys(patch.Annotations)) {
			list = append(list, entry{key, false, patch.PatchPolicy, at.Child("annotations").Key(key)})
		}
		for _, key := range slices.Sorted(maps.Keys(patch.Labels)) {
			list = append(list, entry{key, true, patch.PatchPolicy, at.Child("labels").Key(key)})
		}
	}
	return list
}
