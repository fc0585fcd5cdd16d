package plain_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/chart/plain"
)

const deployFolder = "../../../deploy"

func TestKustomizationIsUpToDate(t *testing.T) {
	t.Parallel()
	manifests, err := plain.Manifests(t.Context(), filepath.Join(deployFolder, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := plain.Kustomization(deployFolder, manifests)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(deployFolder, plain.KustomizationFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("make generate has not been run (-rendered +there):\n%s", diff)
	}
}

// kubectl kustomize deploy gives the objects of the folders, each once and unchanged except for the names of the images.
func TestKustomizationGivesTheObjectsOfTheFolders(t *testing.T) {
	t.Parallel()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), deployFolder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	images := strings.NewReplacer("refit.dev/refit-daemon:latest", "ghcr.io/refit-project/refit-daemon:v0.1.0", "refit.dev/refit-manager:latest", "ghcr.io/refit-project/refit-manager:v0.1.0")
	for _, folder := range []string{"crd", "manager", "hold-webhook", "daemonset", "pull-secrets"} {
		files, err := filepath.Glob(filepath.Join(deployFolder, folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			decode(t, want, images.Replace(string(content)), true)
		}
	}
	got := map[string]any{}
	decode(t, got, string(text), false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-folders +kustomize):\n%s", diff)
	}
}

// decode adds the objects of a text by kind, namespace and name.
func decode(t *testing.T, objects map[string]any, text string, twice bool) {
	t.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		object := struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}{}
		var all map[string]any
		for _, into := range []any{&object, &all} {
			if err := yaml.Unmarshal([]byte(document), into); err != nil {
				t.Fatalf("%v:\n%s", err, document)
			}
		}
		if len(all) == 0 {
			continue
		}
		name := object.Kind + "/" + object.Metadata.Namespace + "/" + object.Metadata.Name
		if _, there := objects[name]; there && !twice {
			t.Errorf("%s is there twice", name)
		}
		objects[name] = all
	}
}
