package render_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refit-project/refit/sidecarset/render"
)

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {containers: [{name: app, image: app:1}]}
---
`

const log = `
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: log}
spec: {selector: {matchLabels: {app: web}}, containers: [{name: log, image: log:1}]}
---
`

func TestRenderSaysWhatHappensAndWhy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files   string
		want    []string
		refused string
	}{
		"injected":         {pod + log, []string{"SidecarSet log: injected", "+++ pod with sidecars", "+    image: log:1"}, ""},
		"another label":    {pod + strings.Replace(log, "app: web", "app: db", 1), []string{"not injected: spec.selector does not select", "the pod stays as it is"}, ""},
		"paused":           {pod + strings.Replace(log, "containers", "injectionStrategy: {paused: true}, containers", 1), []string{"not injected: spec.injectionStrategy.paused"}, ""},
		"namespace":        {pod + strings.Replace(log, "containers", "namespace: other, containers", 1), []string{"does not select namespace shop"}, ""},
		"unknown labels":   {pod + strings.Replace(log, "containers", "namespaceSelector: {matchLabels: {a: b}}, containers", 1), []string{"add the Namespace to the files"}, ""},
		"known labels":     {pod + strings.Replace(log, "containers", "namespaceSelector: {matchLabels: {a: b}}, containers", 1) + "kind: Namespace\nmetadata: {name: shop, labels: {a: b}}\n", []string{"SidecarSet log: injected"}, ""},
		"template":         {"kind: Deployment\nmetadata: {namespace: shop}\nspec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: app:1}]}}}\n---\n" + log, []string{"SidecarSet log: injected"}, ""},
		"invalid":          {pod + strings.Replace(log, ", image: log:1", "", 1), []string{"SidecarSet log would be refused", "spec.containers[0].image"}, ""},
		"conflict":         {pod + strings.Replace(log, "name: log, image", "name: app, image", 1), nil, "the pod has a container app"},
		"no pod":           {log, nil, "no Pod"},
		"no SidecarSet":    {pod, nil, "no SidecarSet"},
		"misspelled field": {pod + strings.Replace(log, "containers", "contaners", 1), nil, "contaners"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects render.Objects
			var out strings.Builder
			err := objects.Read([]byte(tc.files))
			if err == nil {
				err = render.Print(&out, &objects)
			}
			if (tc.refused == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Fatalf("got %v, want %q", err, tc.refused)
			}
			if name == "conflict" && !errors.Is(err, render.ErrRefused) {
				t.Errorf("%v is no refusal", err)
			}
			for _, words := range tc.want {
				if !strings.Contains(out.String(), words) {
					t.Errorf("%q is not in\n%s", words, out.String())
				}
			}
		})
	}
}

// FuzzRead: no file makes it panic.
func FuzzRead(f *testing.F) {
	f.Add([]byte(pod + log))
	f.Add([]byte(`{"items":[{"kind":"Pod"},{"spec":{"template":{}}}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		var objects render.Objects
		if objects.Read(content) != nil {
			return
		}
		_ = render.Print(&strings.Builder{}, &objects)
	})
}
