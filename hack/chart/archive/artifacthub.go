package main

import (
	"fmt"
	"path"
	"strings"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// annotate adds the annotations of Chart.yaml by which Artifact Hub shows the images, the CRDs and the changes of a version. There is no
// signKey: it is for signatures by PGP, and Artifact Hub finds signatures by cosign in the registry.
func annotate(chart *chartv2.Chart, images images) error {
	type image struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	var shown []image
	for _, name := range images.names(chart) {
		program, _, _ := strings.Cut(path.Base(strings.Split(name, "@")[0]), ":")
		shown = append(shown, image{program, name})
	}
	crds, err := definitions(chart)
	if err != nil {
		return err
	}
	changes := []map[string]any{{"kind": "changed", "description": "All changes of this version", "links": []map[string]string{
		{"name": "release", "url": chart.Metadata.Home + "/releases/tag/" + chart.Metadata.AppVersion},
	}}}
	for key, value := range map[string]any{"images": shown, "crds": crds, "changes": changes} {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		chart.Metadata.Annotations["artifacthub.io/"+key] = string(text)
	}
	return nil
}

// definition is a CRD as Artifact Hub shows it.
type definition struct {
	Kind        string `json:"kind"`
	Version     string `json:"version"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
}

// definitions are the CRDs of the chart in their stored versions.
func definitions(chart *chartv2.Chart) ([]definition, error) {
	var all []definition
	for _, file := range chart.Files {
		if path.Dir(file.Name) != "files/crd" || path.Ext(file.Name) != ".yaml" {
			continue
		}
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(file.Data, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		for _, version := range crd.Spec.Versions {
			if !version.Storage {
				continue
			}
			first, _, _ := strings.Cut(strings.Join(strings.Fields(version.Schema.OpenAPIV3Schema.Description), " "), ". ")
			all = append(all, definition{crd.Spec.Names.Kind, version.Name, crd.Name, crd.Spec.Names.Kind, strings.TrimSuffix(first, ".")})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the chart has no CRDs")
	}
	return all, nil
}
