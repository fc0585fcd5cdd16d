// Package plain makes the manifests for kubectl apply from the chart. Each folder of deploy has to be of use without the
// others, so each is rendered on its own.
package plain

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/chart/render"
)

const notice = "# Rendered from deploy/chart; make generate writes it again.\n"

//go:embed values.yaml
var values []byte

// folders of deploy that come from the chart, with the values that differ while they are rendered.
var folders = map[string]map[string]any{
	"daemonset": off("manager"), "manager": off("daemon"), "hold-webhook": off("daemon"), "pull-secrets": nil, "sidecar": nil,
	"hold": {"daemon": map[string]any{"enabled": false}, "policies": map[string]any{"hold": "policy"}},
}

func off(program string) map[string]any {
	return map[string]any{program: map[string]any{"enabled": false}}
}

// Manifests returns the files by their paths below deploy.
func Manifests(ctx context.Context, chart string) (map[string]string, error) {
	files := map[string]string{}
	for folder, differing := range folders {
		given := map[string]any{}
		if err := yaml.UnmarshalStrict(values, &given); err != nil {
			return nil, fmt.Errorf("read values of the plain manifests: %w", err)
		}
		maps.Copy(given, differing)
		texts, err := render.Chart(ctx, chart, render.Release{Namespace: "refit-system", Values: given})
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(texts, func(path, _ string) bool { return !strings.HasPrefix(path, folder+"/") })
		if len(texts) == 0 {
			return nil, fmt.Errorf("the chart has no templates for deploy/%s", folder)
		}
		for path, text := range texts {
			files[path] = notice + text
		}
	}
	return files, nil
}
