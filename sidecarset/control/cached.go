package control

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/rollout/budget"
)

// tooLarge replaces the record of injection of a pod that is too large. It cannot be parsed, so the pod counts as one that
// cannot be updated in place.
const tooLarge = "not read: the pod is too large"

// PodPart returns what the rollout of SidecarSets needs of cached pods.
func PodPart() trim.Part { return trim.Part{Keep: keep, Bound: bound} }

var trimmer = trim.NewPods(PodPart())

// keep keeps why a SidecarSet was not injected, how a pod leaves its workload, and the conditions of SidecarSets and of ended Jobs. If a
// SidecarSet was injected, it keeps the injected containers and all conditions: users name the conditions that show that a hot upgrade has succeeded.
func keep(kept, pod *corev1.Pod) {
	budget.Keep(kept, pod)
	for key := range pod.Annotations {
		if strings.HasPrefix(key, "kruise.io/sidecarset-") || strings.HasPrefix(key, "sidecarset.refit.dev/") {
			trim.Annotations(kept, pod, key)
		}
	}
	if pod.DeletionTimestamp != nil {
		kept.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
		trim.Transition(kept, pod, corev1.DisruptionTarget)
	}
	trim.Conditions(kept, pod, func(kind corev1.PodConditionType) bool {
		return kind == v1beta1.ConditionSidecarTerminated || kind == v1beta1.ConditionSidecarSetUpgradable
	})
	injected := pod.Annotations[v1beta1.AnnotationSidecarSetList] != ""
	trim.EachContainer(kept, pod, func(kept, c *corev1.Container) {
		switch {
		case !v1beta1.IsInjected(c):
		case injected:
			trim.UpdatedFields(kept, c)
		default:
			trim.Variable(kept, v1beta1.EnvSidecarInjected, "true")
		}
	})
	if injected {
		trim.Conditions(kept, pod, func(corev1.PodConditionType) bool { return true })
		trim.Statuses(kept, pod)
	}
}

func bound(bound, kept *corev1.Pod) {
	budget.Bound(bound, kept)
	bound.DeletionGracePeriodSeconds = kept.DeletionGracePeriodSeconds
	// Without this condition refit-manager would write it again at each event of the pod, and cause the next event.
	for i, c := range kept.Status.Conditions {
		if c.Type == v1beta1.ConditionSidecarSetUpgradable && len(c.Reason)+len(c.Message) <= trim.MaxText {
			bound.Status.Conditions[i] = c
		}
	}
	// A pod without the names of its SidecarSets counts as one that was not injected, which may be evicted.
	if list := kept.Annotations[v1beta1.AnnotationSidecarSetList]; list != "" && len(list) <= trim.MaxText {
		bound.Annotations = map[string]string{v1beta1.AnnotationSidecarSetList: list, v1beta1.AnnotationSidecarSetHash: tooLarge}
	}
}
