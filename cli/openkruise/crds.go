package openkruise

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// groups are the API groups of OpenKruise's and of Refit's kinds.
const (
	groupApps   = v1beta1.Group
	groupPolicy = "policy.kruise.io"
	groupRefit  = "refit.dev"
)

// servedKinds are the kinds of OpenKruise that Refit has too.
var servedKinds = []string{
	"ContainerRecreateRequest", "ImageListPullJob", "ImagePullJob", "NodeImage", "NodePodProbe", "PodProbeMarker", "SidecarSet",
}

// derivedKinds are kinds whose objects the managers create from other objects.
var derivedKinds = []string{"NodeImage", "NodePodProbe", "RestartTrigger"}

// HasCRD reports whether a CRD with this name belongs to OpenKruise or Refit.
func HasCRD(name string) bool {
	_, group, _ := strings.Cut(name, ".")
	return slices.Contains([]string{groupApps, groupPolicy, groupRefit}, group)
}

// AnnotationRelease has the name of the Helm release of an object.
const AnnotationRelease = "meta.helm.sh/release-name"

// OfCRD returns the differences for a kind as a whole. release is the Helm release of Refit; empty if there is none.
func OfCRD(crd *apiextensionsv1.CustomResourceDefinition, objects Objects, release string) []Difference {
	kind := crd.Spec.Names.Kind
	o := of{kind: "CRD", name: crd.Name}
	switch served := crd.Spec.Group == groupApps && slices.Contains(servedKinds, kind); {
	case crd.Spec.Group == groupRefit && objects.Count > 0 && !slices.Contains(derivedKinds, kind):
		o.from(objects.String()+"; OpenKruise has no such kind, so nothing carries them out",
			"delete them, or keep refit-manager beside kruise-manager for them (openkruise.mode=beside)")
	case crd.Spec.Group != groupRefit && !served && objects.Count > 0:
		o.to(objects.String()+"; Refit does not serve this kind", "keep kruise-manager for it: move the daemon alone (openkruise.mode=daemonOnly or beside)")
	case served:
		o.ofServed(crd, release)
	}
	return o.found
}

// ofServed adds the differences for a kind that both have.
func (o *of) ofServed(crd *apiextensionsv1.CustomResourceDefinition, ours string) {
	if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		o.to("a webhook of kruise-manager converts between its versions, and reading them fails when kruise-manager has been stopped",
			"replace the CRD by Refit's, whose versions have one schema, when kruise-manager has been stopped (docs/migrate-from-openkruise.md)")
	}
	if release := crd.Annotations[AnnotationRelease]; release != "" && release != ours {
		o.to("the CRD belongs to the Helm release "+release+": with Helm 3 `helm uninstall` deletes it with all objects, also after Refit's release has taken it over",
			"do not uninstall that release, nor upgrade it after the change, which starts kruise-manager again (docs/migrate-from-openkruise.md)")
	}
	if stored := crd.Status.StoredVersions; slices.Contains(stored, "v1alpha1") && slices.Contains(stored, "v1beta1") {
		o.from("its objects are stored in v1alpha1 and v1beta1: the API server refuses the CRD of an OpenKruise that has v1alpha1 alone",
			"go back to an OpenKruise that serves v1beta1, or store the objects in v1alpha1 again and take v1beta1 out of status.storedVersions")
	}
}

// Served returns the version in which objects of a CRD are read: the stored one, which needs no conversion, if it is
// served. It is empty if no version is served.
func Served(crd *apiextensionsv1.CustomResourceDefinition) string {
	version := ""
	for i := range crd.Spec.Versions {
		switch v := &crd.Spec.Versions[i]; {
		case v.Served && v.Storage:
			return v.Name
		case v.Served && version == "":
			version = v.Name
		}
	}
	return version
}
