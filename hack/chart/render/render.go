// Package render renders the chart as helm template does, without a cluster.
package render

import (
	"context"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// Release is what a chart is rendered for. The release is called refit.
type Release struct {
	Namespace string
	Values    map[string]any // those that differ from the chart's
}

// Chart renders the chart in a folder. The texts have the paths of their templates below templates/, those that came out
// empty are left out.
func Chart(ctx context.Context, folder string, release Release) (map[string]string, error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	options := common.ReleaseOptions{Name: "refit", Namespace: release.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(chart, release.Values, options, nil)
	if err != nil {
		return nil, fmt.Errorf("check values: %w", err)
	}
	rendered, err := engine.Engine{Strict: true}.RenderWithContext(ctx, chart, values)
	if err != nil {
		return nil, fmt.Errorf("render chart: %w", err)
	}
	texts := map[string]string{}
	for path, text := range rendered {
		text = strings.Trim(text, "\n")
		if strings.TrimSpace(text) != "" {
			texts[strings.TrimPrefix(path, chart.Name()+"/templates/")] = text + "\n"
		}
	}
	return texts, nil
}
