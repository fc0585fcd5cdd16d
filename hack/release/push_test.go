package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestOptionsThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		want    string // of the error
	}{
		"a push without a signature":         {Options{Push: "example.com/x"}, "has to be signed"},
		"a key and keyless":                  {Options{Key: "k", Keyless: true}, "exclude each other"},
		"a key and unsigned":                 {Options{Push: "example.com/x", Key: "k", Unsigned: true}, "--unsigned excludes"},
		"an unknown platform":                {Options{Platforms: []string{"linux/amd64", "plan9/amd64"}}, `platform "plan9/amd64"`},
		"no platform of the images":          {Options{Platforms: []string{"windows/amd64"}}, "the images need"},
		"another repository than the pushed": {Options{Push: "example.com/x", Key: "k", Repository: "example.com/y"}, "--repository and --push differ"},
	} {
		if err := tc.options.validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: err = %v, want %q", name, err, tc.want)
		}
	}
}

func TestImagesAreNamedWhereTheyArePushedTo(t *testing.T) {
	t.Parallel()
	for want, options := range map[string]Options{
		project:                     {},
		"example.com/refit":         {Push: "example.com/refit", Keyless: true},
		"registry.example.com/mine": {Repository: "registry.example.com/mine", Platforms: []string{"linux/arm64", "darwin/arm64"}},
	} {
		if err := options.validate(); err != nil || options.Repository != want {
			t.Errorf("repository %s, %v; want %s", options.Repository, err, want)
		}
		if len(options.Platforms) > 0 {
			if diff := cmp.Diff([]string{"linux/arm64"}, options.only(nodePlatforms)); diff != "" {
				t.Errorf("platforms of images (-want +got):\n%s", diff)
			}
		}
	}
}

func TestPublishedVersionDoesNotChange(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	r := &release{Options: Options{Push: strings.TrimPrefix(server.URL, "http://") + "/refit", Version: "v1.2.3"}}
	some := func() image {
		index, err := random.Index(64, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return image{name: "refit-daemon", index: index, digest: digest}
	}
	first := some()
	for range 2 { // a release that was interrupted is pushed again
		pushed, err := r.pushImage(t.Context(), first)
		if err != nil || pushed != r.Push+"/refit-daemon@"+first.digest.String() {
			t.Fatalf("pushed %s, %v", pushed, err)
		}
	}
	if _, err := r.pushImage(t.Context(), some()); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("another image with the same version: %v", err)
	}
	tag, err := name.NewTag(r.Push + "/refit-daemon:v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if there, err := remote.Head(tag); err != nil || there.Digest != first.digest {
		t.Errorf("the registry has %v, %v", there, err)
	}
}
