package inject

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/proof"
)

// Plan is which SidecarSets are injected into a pod.
type Plan struct {
	Sets []*Set
	// Skipped are the names of SidecarSets that select the pod and are not injected, with the reasons.
	Skipped map[string]string
	// Keep are the names of SidecarSets that something else injects; what the pod carries of them is kept.
	Keep []string
}

// Result of an injection.
type Result struct {
	Patch []Operation // empty if the pod stays as it is
	// Warnings are shown to the client that creates the pod.
	Warnings []string
}

// Apply decides what the plan adds to a pod. An error that is a *Refusal means that the pod must not be created; any other,
// that it could not be read.
func Apply(raw []byte, plan Plan, now time.Time) (Result, error) {
	if len(plan.Sets) == 0 && len(plan.Skipped) == 0 {
		return Result{}, nil
	}
	d, err := parsePod(raw)
	if err != nil {
		return Result{}, err
	}
	in := &injection{document: d, plan: plan, now: metav1.NewTime(now), kept: map[string]bool{}, claims: proof.Read(d.pod)}
	in.annotations, in.labels = maps.Clone(d.pod.Annotations), maps.Clone(d.pod.Labels)
	if in.annotations == nil {
		in.annotations = map[string]string{}
	}
	if in.labels == nil {
		in.labels = map[string]string{}
	}
	in.plan.Sets = slices.Clone(plan.Sets)
	slices.SortFunc(in.plan.Sets, func(a, b *Set) int { return strings.Compare(a.name, b.name) })
	in.findOld()
	for _, step := range []func() error{in.patchMetadata, in.build, in.place, in.patchContainers, in.addSecrets, in.record, in.recordChecked} {
		if err := step(); err != nil {
			return Result{}, err
		}
	}
	operations, err := in.operations()
	return Result{Patch: operations, Warnings: in.warnings}, err
}

// injection is one under way.
type injection struct {
	*document
	plan     Plan
	now      metav1.Time
	initial  []built // init containers to inject
	regular  []built
	kept     map[string]bool // SidecarSet/container: sidecars that the pod has a container of its own instead of
	claims   *proof.Claims
	warnings []string
}

// built is a container to inject.
type built struct {
	set    *Set
	source string // name in the SidecarSet
	spec   *corev1.Container
	more   v1beta1.UnknownFields // that the SidecarSet has for it
	before bool
}

// carries reports whether the pod says that the SidecarSet has been injected into it.
func (in *injection) carries(set *Set) bool { return annotation.Of(in.pod, set.name) != nil }

// findOld marks the containers that SidecarSets of this plan have injected before, by what the pod says, which nobody has
// checked: they are compared or replaced by place.
func (in *injection) findOld() {
	for _, set := range in.plan.Sets {
		carried := annotation.Of(in.pod, set.name)
		if carried == nil {
			continue
		}
		for _, list := range [][]container{in.containers, in.initContainers} {
			for i := range list {
				name := list[i].name
				// One that is only listed, and was not sent, is that of another SidecarSet, which a policy has injected.
				if v1beta1.IsInjected(list[i].spec) && (set.declares(name) || listed(carried.SidecarList, name) && in.claims.Sent(name)) {
					list[i].old = true
				}
			}
		}
	}
}

// listed reports whether a container is one of these sidecars, or one of the two of a hot upgrade.
func listed(sidecars []string, name string) bool {
	return slices.Contains(sidecars, name) || slices.Contains(sidecars, strings.TrimSuffix(strings.TrimSuffix(name, "-1"), "-2"))
}

// build makes the containers of all SidecarSets.
func (in *injection) build() error {
	for _, set := range in.plan.Sets {
		for i := range set.spec.InitContainers {
			list, err := in.buildContainer(set, &set.spec.InitContainers[i], true)
			if err != nil {
				return err
			}
			in.initial = append(in.initial, list...)
		}
		for i := range set.spec.Containers {
			list, err := in.buildContainer(set, &set.spec.Containers[i], false)
			if err != nil {
				return err
			}
			in.regular = append(in.regular, list...)
		}
	}
	slices.SortStableFunc(in.initial, func(a, b built) int { return strings.Compare(a.spec.Name, b.spec.Name) })
	return nil
}

// addSecrets adds the pull secrets that the pod lacks.
func (in *injection) addSecrets() error {
	for _, set := range in.plan.Sets {
		for _, secret := range set.spec.ImagePullSecrets {
			if in.secretNames[secret.Name] {
				continue
			}
			raw, err := json.Marshal(secret)
			if err != nil {
				return err
			}
			in.secretNames[secret.Name] = true
			in.secrets = append(in.secrets, raw)
			in.changed[pathSecrets] = true
		}
	}
	return nil
}
