package admission

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Complete sets the fields that admission fills in for a SidecarSet that is created or updated; old is nil if it is
// created. Defaults and hashes are the same as in OpenKruise, so that OpenKruise can take over the SidecarSet again.
func Complete(set, old *v1beta1.SidecarSet) {
	completeNamespace(set, old)
	completeVersion(set, old)
	defaults.Complete(&set.Spec)
	hashes := revision.HashesOf(&set.Spec)
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[v1beta1.AnnotationSidecarSetHash], set.Annotations[v1beta1.AnnotationSidecarSetHashWithoutImage] = hashes.Full, hashes.WithoutImage
	// An admission policy selects SidecarSets with failurePolicy Fail by this label.
	switch policy := set.Spec.InjectionStrategy.FailurePolicy; policy {
	case v1beta1.InjectionFail:
		if set.Labels == nil {
			set.Labels = map[string]string{}
		}
		set.Labels[v1beta1.LabelInjectionFailurePolicy] = string(policy)
	case v1beta1.InjectionIgnore:
		delete(set.Labels, v1beta1.LabelInjectionFailurePolicy)
	}
}

// completeNamespace also writes the namespace of v1alpha1 as a selector, because OpenKruise only stores the selector.
// If the stored selector is for another namespace, it follows a client that only knows the namespace.
func completeNamespace(set, old *v1beta1.SidecarSet) {
	spec := &set.Spec
	if spec.Namespace == "" {
		return
	}
	stale := old != nil && old.Spec.Namespace != spec.Namespace && named(spec.NamespaceSelector) &&
		equality.Semantic.DeepEqual(spec.NamespaceSelector, old.Spec.NamespaceSelector)
	if spec.NamespaceSelector == nil || stale {
		spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: spec.Namespace}}
	}
}

// named reports whether the selector selects one namespace by its name.
func named(selector *metav1.LabelSelector) bool {
	return selector != nil && len(selector.MatchExpressions) == 0 && len(selector.MatchLabels) == 1 && selector.MatchLabels[corev1.LabelMetadataName] != ""
}

// completeVersion keeps the custom version in the spec and the label that v1alpha1 uses for it equal. The one that the
// client has changed wins; if both have changed, the spec.
func completeVersion(set, old *v1beta1.SidecarSet) {
	was := &v1beta1.SidecarSet{}
	if old != nil {
		was = old
	}
	label, labelled := set.Labels[v1beta1.LabelSidecarSetCustomVersion]
	before := was.Labels[v1beta1.LabelSidecarSetCustomVersion]
	if set.Spec.CustomVersion == was.Spec.CustomVersion && label != before && (labelled || before == set.Spec.CustomVersion) {
		set.Spec.CustomVersion = label
	}
	set.Spec.CustomVersion = cmp.Or(set.Spec.CustomVersion, label)
	if labelled && set.Spec.CustomVersion != "" {
		set.Labels[v1beta1.LabelSidecarSetCustomVersion] = set.Spec.CustomVersion
	}
}
