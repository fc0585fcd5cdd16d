package podmeta_test

import (
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/podmeta"
)

func TestVersionOfAnImage(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"agent:v1.2": "v1.2", "registry:5000/team/agent": "latest", "registry:5000/agent:v1@sha256:0123456789abcdef": "v1",
		"agent@sha256:0123456789abcdef": "0123456789ab", "agent:" + "-x": "",
	} {
		if got := podmeta.ImageVersion(image); got != want {
			t.Errorf("%s: got %q, want %q", image, got, want)
		}
	}
}

func TestAnEmptyAnnotationIsMergedIntoAsNone(t *testing.T) {
	t.Parallel()
	got, err := podmeta.PatchAnnotation(map[string]string{"k": ""}, "k", `{"b":2}`, v1beta1.PatchMergeJSON)
	if err != nil || got != `{"b":2}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestMergeKeepsTextThatAlreadyHasIt(t *testing.T) {
	t.Parallel()
	const had = `{ "a": 1,  "b": 2 }`
	got, err := podmeta.PatchAnnotation(map[string]string{"k": had}, "k", `{"b":2}`, v1beta1.PatchMergeJSON)
	if err != nil || got != had {
		t.Errorf("got %s, %v", got, err)
	}
}
