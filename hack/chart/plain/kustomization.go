package plain

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// KustomizationFile is the file below deploy for kubectl apply -k.
const KustomizationFile = "kustomization.yaml"

// together are the folders of which an installation consists; the others are for some clusters or pods only.
var together = []string{"manager", "hold-webhook", "daemonset", "pull-secrets"}

// Kustomization returns the kustomization of the CRDs and of manifests, which are by their paths, with the images of the chart.
func Kustomization(deploy string, manifests map[string]string) (string, error) {
	crds, err := filepath.Glob(filepath.Join(deploy, "crd", "*.yaml"))
	if err != nil || len(crds) == 0 {
		return "", fmt.Errorf("find CRDs: %d, %w", len(crds), err)
	}
	var resources []string
	for _, crd := range crds {
		resources = append(resources, "crd/"+filepath.Base(crd))
	}
	seen := map[string]string{}
	for _, folder := range together {
		for _, path := range slices.Sorted(maps.Keys(manifests)) {
			if !strings.HasPrefix(path, folder+"/") {
				continue
			}
			// Each folder has the namespace, so that it is of use without the others. A kustomization may have it once.
			if other, twice := seen[manifests[path]]; twice {
				if filepath.Base(path) != filepath.Base(other) {
					return "", fmt.Errorf("%s and %s are the same", path, other)
				}
				continue
			}
			seen[manifests[path]] = path
			resources = append(resources, path)
		}
	}
	images, err := images(filepath.Join(deploy, "chart"))
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources, "images": images,
	})
	if err != nil {
		return "", err
	}
	return notice + "# All of Refit, as the chart installs it by default. " + holds + "\n" + string(text), nil
}

const holds = "The webhook of hold-webhook holds workloads on every version of Kubernetes; from 1.36 on hold/policy.yaml can take its place."

// images are the names in the manifests, each with the name that the chart gives.
func images(folder string) ([]map[string]string, error) {
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	of, ok := chart.Values["image"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the chart has no image")
	}
	var all []map[string]string
	for _, program := range []string{"refit-daemon", "refit-manager"} {
		all = append(all, map[string]string{
			"name": "refit.dev/" + program, "newName": fmt.Sprintf("%s/%s/%s", of["registry"], of["repository"], program), "newTag": chart.Metadata.AppVersion,
		})
	}
	return all, nil
}
