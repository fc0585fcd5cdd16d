package openkruise_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/refit-project/refit/cli/openkruise"
)

// crdOf is a CRD of OpenKruise that nothing differs by.
func crdOf(name, group, kind string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name, crd.Spec.Group, crd.Spec.Names.Kind = name+"."+group, group, kind
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}, {Name: "v1beta1", Served: true, Storage: true}}
	crd.Status.StoredVersions = []string{"v1beta1"}
	return crd
}

func TestKinds(t *testing.T) {
	t.Parallel()
	const (
		absent    = "1 object: shop/a; Refit does not serve this kind"
		ours      = "1 object: shop/a; OpenKruise has no such kind, so nothing carries them out"
		converted = "a webhook of kruise-manager converts between its versions, and reading them fails when kruise-manager has been stopped"
		released  = "the CRD belongs to the Helm release kruise: with Helm 3 `helm uninstall` deletes it with all objects, also after Refit's release has taken it over"
		stored    = "its objects are stored in v1alpha1 and v1beta1: the API server refuses the CRD of an OpenKruise that has v1alpha1 alone"
	)
	with := func(crd *apiextensionsv1.CustomResourceDefinition, change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
		change(crd)
		return crd
	}
	webhook := func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	}
	helm := func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Annotations = map[string]string{openkruise.AnnotationRelease: "kruise"}
	}
	for name, tc := range map[string]struct {
		crd      *apiextensionsv1.CustomResourceDefinition
		objects  int
		release  string
		to, from []string
	}{
		"of both":                       {crd: crdOf("sidecarsets", "apps.kruise.io", "SidecarSet"), objects: 1},
		"of OpenKruise alone":           {crd: crdOf("clonesets", "apps.kruise.io", "CloneSet"), objects: 1, to: []string{absent}},
		"of OpenKruise alone, not used": {crd: crdOf("clonesets", "apps.kruise.io", "CloneSet")},
		"of OpenKruise's policies":      {crd: crdOf("podunavailablebudgets", "policy.kruise.io", "PodUnavailableBudget"), objects: 1, to: []string{absent}},
		"its webhook is OpenKruise's":   {crd: with(crdOf("clonesets", "apps.kruise.io", "CloneSet"), webhook)},
		"of the name of one of Refit's": {crd: crdOf("sidecarsets", "policy.kruise.io", "SidecarSet"), objects: 1, to: []string{absent}},
		"of Refit alone":                {crd: crdOf("restartrollouts", "refit.dev", "RestartRollout"), objects: 1, from: []string{ours}},
		"of Refit alone, not used":      {crd: crdOf("restartrollouts", "refit.dev", "RestartRollout")},
		"that the manager makes itself": {crd: crdOf("restarttriggers", "refit.dev", "RestartTrigger"), objects: 1},
		"converted by a webhook":        {crd: with(crdOf("sidecarsets", "apps.kruise.io", "SidecarSet"), webhook), to: []string{converted}},
		"not converted": {crd: with(crdOf("sidecarsets", "apps.kruise.io", "SidecarSet"), func(c *apiextensionsv1.CustomResourceDefinition) {
			webhook(c)
			c.Spec.Conversion.Strategy = apiextensionsv1.NoneConverter
		})},
		"of a Helm release":            {crd: with(crdOf("sidecarsets", "apps.kruise.io", "SidecarSet"), helm), to: []string{released}},
		"of the Helm release of Refit": {crd: with(crdOf("sidecarsets", "apps.kruise.io", "SidecarSet"), helm), release: "kruise"},
		"stored in two versions": {crd: with(crdOf("sidecarsets", "apps.kruise.io", "SidecarSet"), func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
		}), from: []string{stored}},
		"stored in the older version": {crd: with(crdOf("sidecarsets", "apps.kruise.io", "SidecarSet"), func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.StoredVersions = []string{"v1alpha1"} })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects openkruise.Objects
			for range tc.objects {
				objects.Add("shop/a")
			}
			expect(t, openkruise.OfCRD(tc.crd, objects, tc.release), tc.to, tc.from)
		})
	}
}

func TestCRDsOfBothAreKnownByTheirGroup(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"clonesets.apps.kruise.io": true, "podunavailablebudgets.policy.kruise.io": true, "restartrollouts.refit.dev": true,
		"rollouts.rollouts.kruise.io": false, "gameservers.game.kruise.io": false, "apps.kruise.io": false, "certificates.cert-manager.io": false,
	} {
		if got := openkruise.HasCRD(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestObjectsAreReadInTheVersionThatIsStored(t *testing.T) {
	t.Parallel()
	version := func(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Storage: storage}
	}
	for name, tc := range map[string]struct {
		versions []apiextensionsv1.CustomResourceDefinitionVersion
		want     string
	}{
		"stored last":    {[]apiextensionsv1.CustomResourceDefinitionVersion{version("v1alpha1", true, false), version("v1beta1", true, true)}, "v1beta1"},
		"stored first":   {[]apiextensionsv1.CustomResourceDefinitionVersion{version("v1alpha1", true, true), version("v1beta1", true, false)}, "v1alpha1"},
		"not served":     {[]apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false, true), version("v1alpha1", true, false), version("v1beta1", true, false)}, "v1alpha1"},
		"nothing served": {[]apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false, true)}, ""},
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Spec.Versions = tc.versions
		if got := openkruise.Served(crd); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
