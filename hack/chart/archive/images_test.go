package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/chart/render"
)

const inRegistry = "registry.example.com:5000/tools/refit"

func digestOf(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

// released is a release with its images.
func released() release {
	return release{version: "v1.2.3", created: time.Unix(1_700_000_000, 0), images: images{
		repository: inRegistry, digests: map[string]string{"refit-daemon": digestOf("a"), "refit-manager": digestOf("b"), "refit-sidecar": digestOf("c")},
	}}
}

func packaged(t *testing.T, of release) (string, *chartv2.Chart) {
	t.Helper()
	path, err := archive(source, of, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	chart, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, chart
}

var imageLine = regexp.MustCompile(`(?m)^ *(?:- )?image: (\S+)$`)

// imagesOf are the images of all pods that the chart makes, each once.
func imagesOf(t *testing.T, path string, values map[string]any) []string {
	t.Helper()
	texts, err := render.Chart(t.Context(), path, render.Release{Namespace: "refit-system", Values: values})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, text := range texts {
		for _, match := range imageLine.FindAllStringSubmatch(text, -1) {
			all = append(all, match[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestReleasedChartPinsTheDigestsOfItsImages(t *testing.T) {
	t.Parallel()
	path, _ := packaged(t, released())
	const daemon, manager = inRegistry + "/refit-daemon", inRegistry + "/refit-manager"
	for name, tc := range map[string]struct {
		values map[string]any
		want   []string
	}{
		"as it is": {want: []string{daemon + ":v1.2.3@" + digestOf("a"), manager + ":v1.2.3@" + digestOf("b")}},
		"a registry with copies": {
			values: map[string]any{"image": map[string]any{"registry": "mirror:5000"}},
			want:   []string{"mirror:5000/tools/refit/refit-daemon:v1.2.3@" + digestOf("a"), "mirror:5000/tools/refit/refit-manager:v1.2.3@" + digestOf("b")},
		},
		"another tag": {values: map[string]any{"image": map[string]any{"tag": "v1.2.4"}}, want: []string{daemon + ":v1.2.4", manager + ":v1.2.4"}},
		"another tag of one image": {
			values: map[string]any{"daemon": map[string]any{"image": map[string]any{"tag": "fix"}}},
			want:   []string{daemon + ":fix", manager + ":v1.2.3@" + digestOf("b")},
		},
		"another digest of one image": {
			values: map[string]any{"daemon": map[string]any{"image": map[string]any{"digest": digestOf("d")}}},
			want:   []string{daemon + ":v1.2.3@" + digestOf("d"), manager + ":v1.2.3@" + digestOf("b")},
		},
		"copies with other digests": {values: map[string]any{"image": map[string]any{"pinDigests": false}}, want: []string{daemon + ":v1.2.3", manager + ":v1.2.3"}},
	} {
		if diff := cmp.Diff(tc.want, imagesOf(t, path, tc.values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestValuesOfAReleasedChartKeepTheirComments(t *testing.T) {
	t.Parallel()
	_, chart := packaged(t, released())
	before, err := os.ReadFile(filepath.Join(source, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(before), "registry: ghcr.io", `registry: "registry.example.com:5000"`, 1)
	want = strings.Replace(want, "repository: refit-project", `repository: "tools/refit"`, 1)
	for _, file := range chart.Raw {
		if file.Name == "values.yaml" {
			if diff := cmp.Diff(want, string(file.Data)); diff != "" {
				t.Errorf("values.yaml (-want +got):\n%s", diff)
			}
		}
	}
}

// What Artifact Hub shows is what the chart installs.
func TestAnnotationsForArtifactHubAreTrue(t *testing.T) {
	t.Parallel()
	path, chart := packaged(t, released())
	var shown []struct{ Name, Image string }
	read(t, chart, "images", &shown)
	names := map[string]string{}
	for _, image := range shown {
		names[image.Image] = image.Name
	}
	for _, image := range append(imagesOf(t, path, nil), inRegistry+"/refit-sidecar:v1.2.3@"+digestOf("c")) {
		if name := names[image]; name == "" || !strings.Contains(image, "/"+name+":") {
			t.Errorf("%s is shown as %q", image, name)
		}
		delete(names, image)
	}
	if len(names) > 0 {
		t.Errorf("shown, and not of the chart: %v", names)
	}

	var crds []definition
	read(t, chart, "crds", &crds)
	texts, err := render.Chart(t.Context(), path, render.Release{Namespace: "refit-system"})
	if err != nil {
		t.Fatal(err)
	}
	installed := texts["crds.yaml"]
	for _, crd := range crds {
		if !strings.Contains(installed, "\n  name: "+crd.Name+"\n") || len(crd.Description) < 20 || crd.Version == "" {
			t.Errorf("not as it is installed: %+v", crd)
		}
	}
	if count := strings.Count(installed, "kind: CustomResourceDefinition\n"); count != len(crds) {
		t.Errorf("%d CRDs are shown, %d installed", len(crds), count)
	}
	if changes := chart.Metadata.Annotations["artifacthub.io/changes"]; !strings.Contains(changes, "/releases/tag/v1.2.3\n") {
		t.Errorf("changes:\n%s", changes)
	}
}

func read(t *testing.T, chart *chartv2.Chart, key string, into any) {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(chart.Metadata.Annotations["artifacthub.io/"+key]))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidDigestIsRefused(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"refit-daemon", "refit-daemon=sha256:abc", "=" + digestOf("a"), "refit-daemon=" + digestOf("a") + "\n"} {
		if err := new(images).add(value); err == nil {
			t.Errorf("%q was taken", value)
		}
	}
}
