// Package docs_test checks what the documents and the examples say.
package docs_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarmode"
	"github.com/refit-project/refit/sidecarset/admission"
)

func TestConfigurationsOfTheSidecarAreValid(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, block := range blocks(t) {
		if block.Language != "yaml" || block.Value != t.Name() {
			continue
		}
		checked++
		if err := sidecarmode.Check(block.String(), []byte(block.Text), nil); err != nil {
			t.Error(err)
		}
	}
	if checked < 3 {
		t.Errorf("only %d configurations were checked", checked)
	}
	for _, name := range []string{"30-config.yaml", "examples/game-config.yaml"} {
		manifest, err := os.ReadFile("../deploy/sidecar/" + name)
		if err == nil {
			err = sidecarmode.Check(name, manifest, nil)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestTheSidecarSetOfTheExampleIsAdmitted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/sidecar/examples/sidecarset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set v1beta1.SidecarSet
	if err := yaml.UnmarshalStrict(text, &set); err != nil {
		t.Fatal(err)
	}
	for _, refused := range admission.Check(&set, nil, nil) {
		t.Error(refused)
	}
}

// TestSidecarSetInjectsTheContainerOfTheExample: what the end-to-end tests show of the pod is true of the SidecarSet.
func TestSidecarSetInjectsTheContainerOfTheExample(t *testing.T) {
	t.Parallel()
	type spec struct {
		Containers []map[string]any `json:"containers"`
		Volumes    []map[string]any `json:"volumes"`
	}
	read := func(name string) spec {
		var manifest struct {
			Spec spec `json:"spec"`
		}
		text, err := os.ReadFile("../deploy/sidecar/examples/" + name)
		if err == nil {
			err = yaml.Unmarshal(text, &manifest)
		}
		if err != nil {
			t.Fatal(err)
		}
		return manifest.Spec
	}
	set, pod := read("sidecarset.yaml"), read("pod.yaml")
	injected := set.Containers[0]
	for _, ofKruise := range []string{"podInjectPolicy", "shareVolumePolicy"} {
		if injected[ofKruise] == nil {
			t.Errorf("%s is not set", ofKruise)
		}
		delete(injected, ofKruise)
	}
	if diff := cmp.Diff(pod.Containers[1], injected); diff != "" {
		t.Errorf("container (-pod.yaml +sidecarset.yaml):\n%s", diff)
	}
	// The volume of the files is the workload's.
	if diff := cmp.Diff(pod.Volumes[1:], set.Volumes); diff != "" {
		t.Errorf("volumes (-pod.yaml +sidecarset.yaml):\n%s", diff)
	}
}
