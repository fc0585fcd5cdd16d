package inject

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/proof"
)

// Plan says which SidecarSets to inject into a pod.
type Plan struct {
	Sets []*Set
	// Skipped maps SidecarSets that select the pod and are not injected to the reasons.
	Skipped map[string]string
	// Keep names SidecarSets that something else injects. Their records in the pod are kept.
	Keep []string
}

// Result is the result of an injection.
type Result struct {
	Patch []Operation // empty if the pod does not change
	// Warnings are shown to the client that creates the pod.
	Warnings []string
}

// Apply returns what the plan adds to a pod. If the error is a *Refusal, the pod must not be created; any other error
// means that the pod is unreadable.
func Apply(raw []byte, plan Plan, now time.Time) (Result, error) {
	if len(plan.Sets) == 0 && len(plan.Skipped) == 0 {
		return Result{}, nil
	}
	if err := foreign.CheckObject(raw, &corev1.Pod{}); err != nil {
		return Result{}, &Refusal{Field: "spec", Message: err.Error()}
	}
	d, err := parsePod(raw)
	if err != nil {
		return Result{}, err
	}
	in := &injection{document: d, plan: plan, now: metav1.NewTime(now), kept: map[string]bool{}, claims: proof.Read(d.pod)}
	in.annotations, in.labels = map[string]string{}, map[string]string{}
	maps.Copy(in.annotations, d.pod.Annotations)
	maps.Copy(in.labels, d.pod.Labels)
	in.plan.Sets = slices.SortedFunc(slices.Values(plan.Sets), func(a, b *Set) int { return strings.Compare(a.name, b.name) })
	in.findOld()
	for _, step := range []func() error{in.patchMetadata, in.build, in.place, in.patchContainers, in.addSecrets, in.record, in.recordChecked} {
		if err := step(); err != nil {
			return Result{}, err
		}
	}
	operations, err := in.operations()
	return Result{Patch: operations, Warnings: in.warnings}, err
}

// injection is an injection in progress.
type injection struct {
	*document
	plan     Plan
	now      metav1.Time
	initial  []built // init containers to inject
	regular  []built
	kept     map[string]bool // SidecarSet/container: sidecars replaced by a container of the pod
	claims   *proof.Claims
	warnings []string
}

// built is a container to inject.
type built struct {
	set    *Set
	source string // name in the SidecarSet
	spec   *corev1.Container
	more   v1beta1.UnknownFields // from the SidecarSet
	before bool
}

// carries reports whether the pod records that the SidecarSet has been injected into it.
func (in *injection) carries(set *Set) bool { return annotation.Of(in.pod, set.name) != nil }

// findOld marks the containers that SidecarSets of this plan have injected before, according to the pod, which is not
// trusted: they are later compared, or replaced in place.
func (in *injection) findOld() {
	for _, set := range in.plan.Sets {
		carried := annotation.Of(in.pod, set.name)
		if carried == nil {
			continue
		}
		for _, list := range [][]container{in.containers, in.initContainers} {
			for i := range list {
				name := list[i].name
				// A container that is only listed, and was not sent by the client, belongs to another SidecarSet,
				// injected by a policy.
				if v1beta1.IsInjected(list[i].spec) && (set.declares(name) || listed(carried.SidecarList, name) && in.claims.Sent(name)) {
					list[i].old = true
				}
			}
		}
	}
}

// listed reports whether a container is one of these sidecars, or one of the two containers of a hot upgrade.
func listed(sidecars []string, name string) bool {
	return slices.Contains(sidecars, name) || slices.Contains(sidecars, strings.TrimSuffix(strings.TrimSuffix(name, "-1"), "-2"))
}

// build builds the containers of all SidecarSets.
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

// addSecrets adds pull secrets that the pod does not have.
func (in *injection) addSecrets() error {
	for _, set := range in.plan.Sets {
		for _, secret := range set.spec.ImagePullSecrets {
			if in.secretNames[secret.Name] {
				continue
			}
			in.secretNames[secret.Name] = true
			in.secrets = append(in.secrets, must.JSON(secret))
			in.changed[pathSecrets] = true
		}
	}
	return nil
}
