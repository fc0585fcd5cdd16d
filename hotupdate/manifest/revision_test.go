package manifest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/payload"
)

// A pod that restores a revision compares digests: the same files have the same digest, from any source and in any order.
func TestDigestIsThatOfNamesContentsAndModes(t *testing.T) {
	t.Parallel()
	a, b := manifest.File{Name: "a", SHA256: "1", Size: 1}, manifest.File{Name: "b", SHA256: "2"}
	same := manifest.Digest([]manifest.File{a, b})
	brought := a
	brought.Archive, brought.Size = "3", 7
	if got := manifest.Digest([]manifest.File{b, brought}); got != same {
		t.Error("another digest for the same files in another order")
	}
	for name, files := range map[string][]manifest.File{
		"content":       {{Name: "a", SHA256: "2"}, b},
		"name":          {{Name: "c", SHA256: "1"}, b},
		"executable":    {{Name: "a", SHA256: "1", Executable: true}, b},
		"mode":          {{Name: "a", SHA256: "1", Mode: 0o600}, b},
		"one less":      {a},
		"none":          nil,
		"one in two":    {{Name: "a", SHA256: "1 false 600"}, b},
		"one more of a": {a, {Name: "a/b", SHA256: "2"}},
	} {
		if manifest.Digest(files) == same {
			t.Errorf("%s: the same digest", name)
		}
	}
}

// Records that other versions of the program have written have these digests.
func TestDigestIsTheSameInEveryVersion(t *testing.T) {
	t.Parallel()
	const want = "bd02a991d7c64fa60fe2d8cf6cc1ec51249630faa6aa08e36f068bb355731f57" // of "a" 1 false and "b" 2 true 600, each on a line
	if got := manifest.Digest([]manifest.File{{Name: "a", SHA256: "1"}, {Name: "b", SHA256: "2", Executable: true, Mode: 0o600}}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The usual modes are written as in earlier versions, so that an earlier manifest has the same digest.
func TestUsualModesAreNoModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[manifest.File]manifest.File{
		{}:                              {},
		{Mode: 0o644}:                   {},
		{Mode: 0o755}:                   {Executable: true},
		{Mode: 0o600}:                   {Mode: 0o600},
		{Mode: 0o600, Executable: true}: {Mode: 0o600, Executable: true},
	} {
		got := mode.Normalized()
		if got != want || got.Perm() != mode.Perm() && mode.Mode != 0 {
			t.Errorf("%+v: %+v, want %+v", mode, got, want)
		}
	}
	for want, f := range map[string]manifest.File{"-rw-r--r--": {}, "-rwxr-xr-x": {Executable: true}, "-rw-------": {Mode: 0o600, Executable: true}} {
		if got := fmt.Sprint(f.Perm()); got != want {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
}

// Files of earlier requests that a request replaces are removed, and files of triggers stay.
func TestFilesAreThoseOfTheirSources(t *testing.T) {
	t.Parallel()
	plain, archive := manifest.Origin{Name: "a", SHA256: "1"}, manifest.Origin{Name: "dir", SHA256: "0123456789abcdef", Format: payload.TarGz}
	r := manifest.Revision{
		Version: "v1", Requested: manifest.Requested{Digest: "d", Sources: []manifest.Origin{plain, archive}},
		Files: []manifest.File{
			{Name: "a", SHA256: "1", Size: 1}, {Name: "dir/b", SHA256: "2", Size: 20, Archive: "0123456789ab"},
			{Name: "a", SHA256: "other", Size: 300}, {Name: "other", SHA256: "1", Size: 4000}, {Name: "dir/c", SHA256: "3", Archive: "ba9876543210"}, {Name: "dir/d", SHA256: "4"},
		},
	}
	if got := r.Size(); got != 4321 {
		t.Errorf("size %d", got)
	}
	for _, brought := range []manifest.Origin{plain, archive} {
		if !r.Brought(brought) {
			t.Errorf("%+v has brought nothing", brought)
		}
	}
	if r.Brought(manifest.Origin{Name: "a", SHA256: "2"}) || r.Brought(manifest.Origin{Name: "b", SHA256: "1"}) {
		t.Error("another content or name is brought")
	}
	left := r.WithoutRequested()
	var names []string
	for _, f := range left.Files {
		names = append(names, f.Name+" "+f.SHA256)
	}
	if diff := cmp.Diff([]string{"a other", "other 1", "dir/c 3", "dir/d 4"}, names); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if r.Unrequested() || !left.Unrequested() || len(left.Requested.Sources) > 0 || len(r.Files) != 6 {
		t.Errorf("%+v, of %+v", left, r)
	}
	first := manifest.Revision{Version: manifest.InitialVersion}
	if !first.Unrequested() || (manifest.Revision{Version: "v1"}).Unrequested() { // one of an earlier version does not say
		t.Error("only the first revision is one that nobody has requested")
	}
}

func TestALayerHidesWhatHasNoPlaceBelowIt(t *testing.T) {
	t.Parallel()
	l := manifest.NewLayer([]manifest.File{{Name: "a"}, {Name: "dir/sub/b"}})
	var hidden []string
	for _, name := range []string{"a", "a/x", "a/x/y", "dir", "dir/sub", "dir/sub/b", "dir/sub/b/x", "dir/c", "dir/sub/c", "b", "ab"} {
		if l.Hides(name) {
			hidden = append(hidden, name)
		}
	}
	if want := []string{"a", "a/x", "a/x/y", "dir", "dir/sub", "dir/sub/b", "dir/sub/b/x"}; !slices.Equal(hidden, want) {
		t.Errorf("%q, want %q", hidden, want)
	}
	if (manifest.Layer{}).Hides("a") {
		t.Error("nothing hides something")
	}
}
