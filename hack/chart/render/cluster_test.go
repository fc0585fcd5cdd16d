package render_test

import (
	"context"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// conversions is a cluster that has CRDs alone, with their conversion strategies.
type conversions struct {
	dynamic.NamespaceableResourceInterface
	strategies map[string]string
}

func (c conversions) GetClientFor(_, _ string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return c, false, nil
}

func (c conversions) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	strategy, found := c.strategies[name]
	if !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, name)
	}
	crd := &unstructured.Unstructured{Object: map[string]any{}}
	return crd, unstructured.SetNestedField(crd.Object, strategy, "spec", "conversion", "strategy")
}

// Helm leaves the conversion of a CRD that it takes over: nothing could read the objects when kruise-manager has been stopped.
func TestACRDThatOpenKruiseConvertsIsNotTakenOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode       string
		strategies map[string]string
		refused    string
	}{
		"no CRDs":                       {mode: "none"},
		"of Refit":                      {mode: "none", strategies: map[string]string{"sidecarsets.apps.kruise.io": "None", "restartrollouts.refit.dev": "None"}},
		"of OpenKruise":                 {mode: "none", strategies: map[string]string{"nodeimages.apps.kruise.io": "None", "sidecarsets.apps.kruise.io": "Webhook"}, refused: "sidecarsets.apps.kruise.io"},
		"of OpenKruise alone":           {mode: "none", strategies: map[string]string{"clonesets.apps.kruise.io": "Webhook"}},
		"of OpenKruise, which runs":     {mode: "beside", strategies: map[string]string{"sidecarsets.apps.kruise.io": "Webhook"}},
		"of OpenKruise, daemon's place": {mode: "daemonOnly", strategies: map[string]string{"sidecarsets.apps.kruise.io": "Webhook"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loaded, err := loader.Load(chart)
			if err != nil {
				t.Fatal(err)
			}
			given := map[string]any{"openkruise": map[string]any{"mode": tc.mode}}
			values, err := util.ToRenderValues(loaded, given, common.ReleaseOptions{Name: "refit", Namespace: namespace, Revision: 1, IsInstall: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = engine.RenderWithClientProvider(loaded, values, conversions{strategies: tc.strategies})
			switch {
			case tc.refused == "" && err != nil:
				t.Error(err)
			case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), "CRD "+tc.refused+" is converted by a webhook")):
				t.Errorf("error %v, want one about %s", err, tc.refused)
			}
		})
	}
}
