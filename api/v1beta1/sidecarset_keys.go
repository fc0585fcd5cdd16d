package v1beta1

import corev1 "k8s.io/api/core/v1"

// Annotations and labels of a SidecarSet, shared with OpenKruise.
const (
	// AnnotationSidecarSetCanary set to "true", with AnnotationSidecarSetBase, makes the SidecarSet replace its base in the
	// pods that both select.
	AnnotationSidecarSetCanary = "apps.kruise.io/sidecarset-canary"
	// AnnotationSidecarSetBase is the name of the base of a canary.
	AnnotationSidecarSetBase = "apps.kruise.io/sidecarset-base"
	// LabelSidecarSetCustomVersion is spec.customVersion, in v1alpha1 of OpenKruise and on ControllerRevisions.
	LabelSidecarSetCustomVersion = "apps.kruise.io/sidecarset-custom-version"
	// LabelSidecarSetName on a ControllerRevision is the name of its SidecarSet.
	LabelSidecarSetName = "kruise.io/sidecarset-name"
)

// Annotations of pods, shared with OpenKruise. The first two are on SidecarSets and ControllerRevisions as well, where the
// value is the hash alone.
const (
	// AnnotationSidecarSetHash is a JSON object from the name of a SidecarSet to what was injected and its hash.
	AnnotationSidecarSetHash = "kruise.io/sidecarset-hash"
	// AnnotationSidecarSetHashWithoutImage is the same with hashes of the containers without their images.
	AnnotationSidecarSetHashWithoutImage = "kruise.io/sidecarset-hash-without-image"
	// AnnotationSidecarSetList is the names of the injected SidecarSets, sorted, with commas.
	AnnotationSidecarSetList = "kruise.io/sidecarset-injected-list"
	// AnnotationSidecarSetInPlaceUpdateState is a JSON object from the name of a SidecarSet to its last update in place.
	AnnotationSidecarSetInPlaceUpdateState = "kruise.io/sidecarset-inplace-update-state"
	// AnnotationHotUpgradeWorking is a JSON object from the name of a sidecar to the working container.
	AnnotationHotUpgradeWorking = "kruise.io/sidecarset-working-hotupgrade-container"
	// PrefixSidecarSetVersion is followed by the name of a container: its version.
	PrefixSidecarSetVersion = "version.sidecarset.kruise.io/"
	// PrefixSidecarSetVersionAlt is followed by the name of a container: the version of the other one; "0" without a hot upgrade.
	PrefixSidecarSetVersionAlt = "versionalt.sidecarset.kruise.io/"
)

// ConditionSidecarSetUpgradable on a pod says whether it can be updated in place.
const ConditionSidecarSetUpgradable = "SidecarSetUpgradable"

// EnvSidecarInjected is "true" in every injected container, as in OpenKruise.
const EnvSidecarInjected = "IS_INJECTED"

// IsInjected reports whether a SidecarSet has injected the container. The environment of a container cannot be changed, so
// this holds as long as the pod exists.
func IsInjected(container *corev1.Container) bool {
	for i := range container.Env {
		if container.Env[i].Name == EnvSidecarInjected && container.Env[i].Value == "true" {
			return true
		}
	}
	return false
}

// Keys of Refit.
const (
	// LabelInjectionFailurePolicy on a SidecarSet is "Fail" if spec.injectionStrategy.failurePolicy is; admission sets it.
	// An admission policy selects by it.
	LabelInjectionFailurePolicy = "sidecarset.refit.dev/failure-policy"
	// AnnotationSidecarSetServiceAccount on a SidecarSet is the name of a service account. Injected pods get it if theirs
	// is "default". A user who writes it needs the verb "inject" on that serviceaccount in all namespaces.
	AnnotationSidecarSetServiceAccount = "sidecarset.refit.dev/service-account"
	// AnnotationSidecarSetShareProcesses on a SidecarSet with the value "true" makes the containers of injected pods share
	// a process namespace, unless the pods set it to false. A user who writes it needs the verb "share-process-namespace"
	// on the SidecarSet.
	AnnotationSidecarSetShareProcesses = "sidecarset.refit.dev/share-process-namespace"
	// AnnotationSidecarSetSkipped on a pod is a JSON object from the name of a SidecarSet that selects the pod but was not
	// injected to the reason.
	AnnotationSidecarSetSkipped = "sidecarset.refit.dev/skipped"
	// AnnotationSidecarSetChecked on a pod from the manifest of an injected one lists the SidecarSets whose containers were
	// compared or injected at admission, and with a "-" the ones that were not injected. It is valid only in the request in
	// which admission has added it.
	AnnotationSidecarSetChecked = "sidecarset.refit.dev/checked"
	// AnnotationSidecarSetCheckedAgain is the same for a pod whose manifest already has the other one: admission removes
	// the one in the manifest and adds the other one.
	AnnotationSidecarSetCheckedAgain = "sidecarset.refit.dev/checked-again"
	// AnnotationSidecarSetAborted on a pod is a JSON object from the name of a SidecarSet to the hash of the spec whose hot
	// upgrade was aborted. It is not tried again with that spec; removing the annotation tries it again.
	AnnotationSidecarSetAborted = "sidecarset.refit.dev/aborted"
	// LabelSidecarInjection on a namespace with the value "disabled" excludes its pods from the webhook. The manifests of
	// the webhook select by it.
	LabelSidecarInjection = "sidecarset.refit.dev/injection"
	// AnnotationSidecarInject on a pod is "false", or a list of names of SidecarSets such as "-log,-mesh"; see OverrideOptOut.
	AnnotationSidecarInject = "sidecarset.refit.dev/inject"
	// PrefixSidecarImage is followed by the name of a container: its image; see OverrideImage.
	PrefixSidecarImage = "image.sidecarset.refit.dev/"
	// PrefixSidecarResources is followed by the name of a container: its resources, as JSON; see OverrideResources.
	PrefixSidecarResources = "resources.sidecarset.refit.dev/"
)
