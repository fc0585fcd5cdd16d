package openkruise

import (
	"slices"

	"github.com/refit-project/refit/api/v1beta1"
)

// ownField is a field of SidecarSets that OpenKruise does not have: its CRD prunes it, or its manager removes it when it
// writes.
type ownField struct {
	path        string
	used        func(*v1beta1.SidecarSetSpec) bool
	without, do string
}

// ownFields returns all such fields.
func ownFields() []ownField {
	return append(ownFieldsOfInjection(), ownFieldsOfUpdates()...)
}

// nothing is the advice for a field that is only removed.
const nothing = "remove it, so that it is seen that it has no effect"

func ownFieldsOfInjection() []ownField {
	return []ownField{
		{"podVolumes", func(s *v1beta1.SidecarSetSpec) bool { return len(s.PodVolumes) > 0 },
			"the volumes are not looked for in pods, and mounts of them make the SidecarSet invalid", "move the volumes into spec.volumes"},
		{"patchContainers", func(s *v1beta1.SidecarSetSpec) bool { return len(s.PatchContainers) > 0 },
			"new pods do not get these variables and mounts", "write them into the templates of the workloads"},
		{"patchPodMetadata[].labels", func(s *v1beta1.SidecarSetSpec) bool {
			return slices.ContainsFunc(s.PatchPodMetadata, func(p v1beta1.SidecarSetPatchPodMetadata) bool { return len(p.Labels) > 0 })
		}, "new pods do not get the labels", "write them into the templates of the workloads"},
		{"containers[].versionLabel", anyContainer(func(c *v1beta1.SidecarContainer) bool { return c.VersionLabel != "" }),
			"new pods do not get the label", nothing},
		{"injectionStrategy.conflictPolicy", func(s *v1beta1.SidecarSetSpec) bool {
			return s.InjectionStrategy.ConflictPolicy != "" && s.InjectionStrategy.ConflictPolicy != v1beta1.ConflictOverride
		}, "a container of a pod with the name of a sidecar is replaced", "rename such containers"},
		{"injectionStrategy.failurePolicy", func(s *v1beta1.SidecarSetSpec) bool {
			return s.InjectionStrategy.FailurePolicy == v1beta1.InjectionIgnore
		},
			"all new pods of the cluster are refused while kruise-manager does not answer", nothing},
		{"injectionStrategy.engine", func(s *v1beta1.SidecarSetSpec) bool { return s.InjectionStrategy.Engine == v1beta1.EnginePolicy },
			"kruise-manager injects as well as the MutatingAdmissionPolicy", "delete the policy that refit-manager sidecarset compile has written"},
		{"injectionStrategy.allowedPodOverrides", func(s *v1beta1.SidecarSetSpec) bool { return len(s.InjectionStrategy.AllowedPodOverrides) > 0 },
			"annotations of pods change nothing: all selected pods get the SidecarSet as it is", "take pods that opt out away from the selector"},
		{"injectionStrategy.repairPolicy", func(s *v1beta1.SidecarSetSpec) bool { return s.InjectionStrategy.RepairPolicy == v1beta1.RepairEvict },
			"pods that miss their sidecars are not replaced", nothing},
		{"injectionStrategy.revision.missingPolicy", func(s *v1beta1.SidecarSetSpec) bool {
			return s.InjectionStrategy.Revision != nil && s.InjectionStrategy.Revision.MissingPolicy != ""
		}, "new pods are refused when the revision does not exist", "remove injectionStrategy.revision, or name one that exists"},
	}
}

func ownFieldsOfUpdates() []ownField {
	return []ownField{
		{"updateStrategy.maxUnavailablePerWorkload", func(s *v1beta1.SidecarSetSpec) bool { return s.UpdateStrategy.MaxUnavailablePerWorkload != nil },
			"all pods of a workload may be updated at a time, as far as maxUnavailable allows", "lower updateStrategy.maxUnavailable"},
		{"updateStrategy.minReadySeconds", func(s *v1beta1.SidecarSetSpec) bool { return s.UpdateStrategy.MinReadySeconds > 0 },
			"the next pod is updated as soon as the one before is ready", nothing},
		{"updateStrategy.progressDeadlineSeconds", func(s *v1beta1.SidecarSetSpec) bool { return s.UpdateStrategy.ProgressDeadlineSeconds != nil },
			"SidecarSets have no conditions", "watch status.updatedReadyPods"},
		{"updateStrategy.pauseAfterFailedPods", func(s *v1beta1.SidecarSetSpec) bool { return s.UpdateStrategy.PauseAfterFailedPods != nil },
			"a rollout is not paused by pods that fail", "use updateStrategy.partition"},
		{"updateStrategy.recreatePolicy", func(s *v1beta1.SidecarSetSpec) bool { return s.UpdateStrategy.RecreatePolicy == v1beta1.RecreateEvict },
			"pods that cannot be updated in place keep the old version", "restart their workloads with kubectl rollout restart"},
		{"updateStrategy.prePullPolicy", func(s *v1beta1.SidecarSetSpec) bool { return s.UpdateStrategy.PrePullPolicy == v1beta1.PrePullAlways },
			"images are pulled when the containers have been stopped", "create ImagePullJobs before"},
		{"containers[].upgradeStrategy.completion", anyContainer(func(c *v1beta1.SidecarContainer) bool { return c.UpgradeStrategy.Completion != nil }),
			"a hot upgrade has taken over when all containers are ready", "use readiness probes that say so"},
	}
}

func anyContainer(is func(*v1beta1.SidecarContainer) bool) func(*v1beta1.SidecarSetSpec) bool {
	return func(spec *v1beta1.SidecarSetSpec) bool { return slices.ContainsFunc(containersOf(spec), is) }
}
