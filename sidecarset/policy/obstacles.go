package policy

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1beta1"
)

// obstacles returns what prevents the compilation of a SidecarSet.
func obstacles(set *v1beta1.SidecarSet) field.ErrorList {
	var errs field.ErrorList
	if set.ResourceVersion == "" {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "resourceVersion"),
			"the SidecarSet has to be as it is stored in the cluster: kubectl get sidecarset NAME --output=yaml"))
	}
	return append(errs, Obstacles(set)...)
}

// Obstacles returns the fields because of which a policy cannot inject a SidecarSet: what they add depends on the pod, on other objects,
// or on random values. The webhook leaves a SidecarSet with engine Policy to its policy, so that one with such a field would not be injected.
func Obstacles(set *v1beta1.SidecarSet) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	refuse := func(when bool, at *field.Path, why string) {
		if when {
			errs = append(errs, field.Forbidden(at, why))
		}
	}
	refuse(set.Annotations[v1beta1.AnnotationSidecarSetCanary] == "true", field.NewPath("metadata", "annotations").Key(v1beta1.AnnotationSidecarSetCanary),
		"a policy does not know which other SidecarSets select the pod")
	for _, key := range []string{v1beta1.AnnotationSidecarSetServiceAccount, v1beta1.AnnotationSidecarSetShareProcesses} {
		_, asked := set.Annotations[key]
		refuse(asked, field.NewPath("metadata", "annotations").Key(key), "the outcome depends on what the pod says itself")
	}
	refuse(set.Spec.Selector == nil, spec.Child("selector"), "without it no pod is selected")
	strategy := &set.Spec.InjectionStrategy
	at := spec.Child("injectionStrategy")
	refuse(strategy.Engine != v1beta1.EnginePolicy, at.Child("engine"), "must be Policy, so that the webhook leaves the pods to the policy")
	refuse(strategy.Revision != nil, at.Child("revision"), "a policy injects one revision")
	refuse(strategy.ConflictPolicy != "" && strategy.ConflictPolicy != v1beta1.ConflictFail, at.Child("conflictPolicy"), "a policy can only let the API server refuse the pod: Fail")
	refuse(len(strategy.AllowedPodOverrides) > 0, at.Child("allowedPodOverrides"), "a policy adds the same to every pod")
	refuse(len(set.Spec.PatchContainers) > 0, spec.Child("patchContainers"), "the pod's own containers are not changed by a policy")
	refuse(len(set.Spec.PatchPodMetadata) > 0, spec.Child("patchPodMetadata"), "the outcome depends on the metadata of the pod")
	refuse(len(set.Spec.PodVolumes) > 0, spec.Child("podVolumes"), "the outcome depends on the volumes of the pod")
	for _, list := range []struct {
		at         *field.Path
		containers []v1beta1.SidecarContainer
	}{{spec.Child("initContainers"), set.Spec.InitContainers}, {spec.Child("containers"), set.Spec.Containers}} {
		for i := range list.containers {
			c, at := &list.containers[i], list.at.Index(i)
			refuse(c.UpgradeStrategy.UpgradeType == v1beta1.HotUpgrade, at.Child("upgradeStrategy", "upgradeType"), "two containers with annotations of their own need the webhook")
			refuse(c.ShareVolumePolicy.Type == v1beta1.ShareVolumeEnabled, at.Child("shareVolumePolicy", "type"), "the mounts depend on the pod")
			refuse(c.ShareVolumeDevicePolicy != nil && c.ShareVolumeDevicePolicy.Type == v1beta1.ShareVolumeEnabled, at.Child("shareVolumeDevicePolicy", "type"), "the devices depend on the pod")
			refuse(len(c.TransferEnv) > 0, at.Child("transferEnv"), "the variables depend on the pod")
			refuse(c.ResourcesPolicy != nil, at.Child("resourcesPolicy"), "the resources depend on the pod")
			for _, name := range slices.Sorted(maps.Keys(c.Unknown)) {
				refuse(true, at.Child(name), "Refit does not know this field; the API server refuses pods to which a policy adds fields that it does not know either")
			}
			refuse(c.VersionLabel != "", at.Child("versionLabel"), "labels are not changed by a policy")
		}
	}
	return errs
}
