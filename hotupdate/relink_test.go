package hotupdate_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
)

// replaceLink puts a file of the program in place of the link at name, as editors and "sed -i" do.
func (b *bench) replaceLink(t *testing.T, name string) {
	t.Helper()
	beside := filepath.Join(b.dir, "beside")
	if err := errors.Join(os.WriteFile(beside, []byte("mine"), 0o600), os.Rename(beside, filepath.Join(b.dir, name))); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) removeLink(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// Kept files whose link the program has replaced or removed are visible again after an update or a rollback, which names them.
func TestFilesWithReplacedLinksAreMended(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	b.apply(t, inline("v1", files{"g": "1", "in/h": "1", "x": "1"}))
	change := func() {
		t.Helper()
		b.replaceLink(t, "g")
		b.removeLink(t, "in/h")
		b.replaceLink(t, "x")
	}
	change()
	req := inline("v2", files{"x": "2"})
	req.Keep = true
	if res := b.apply(t, req); !cmp.Equal(res.Mended, []string{"g", "in/h"}) { // x is sent
		t.Errorf("mended %q", res.Mended)
	}
	b.check(t, files{"g": "1", "in/h": "1", "x": "2"})
	change()
	res, err := b.Rollback(t.Context(), "")
	if err != nil || !cmp.Equal(res.Mended, []string{"g", "in/h", "x"}) {
		t.Errorf("after the rollback: mended %q, %v", res.Mended, err)
	}
	b.check(t, files{"g": "mine", "in/h": "1", "x": "mine"}) // the files that the update has replaced
}

// The same update again restores the files, with and without digests.
func TestTheSameUpdateAgainRestoresReplacedLinks(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	req := inline("v1", files{"a": "1"})
	for _, digest := range []string{"", sum("1")} {
		req.Sources[0].SHA256 = digest
		for what, change := range map[string]func(*testing.T, string){
			"replaced": b.replaceLink, "removed": b.removeLink,
			"all hidden": func(t *testing.T, _ string) { t.Helper(); b.removeLink(t, "..data") },
		} {
			b.apply(t, req)
			change(t, "a")
			if res := b.apply(t, req); !res.Changed {
				t.Errorf("%s: nothing has changed", what)
			}
			b.check(t, files{"a": "1"})
		}
	}
}

// The expected digest of a request that keeps files includes them.
func TestDigestOfARequestThatKeepsFiles(t *testing.T) {
	t.Parallel()
	request := func(version, name, digest string) hotupdate.Request {
		req := inline(version, files{name: "1"})
		req.Keep, req.Digest = true, digest
		return req
	}
	reference := newBench(t, nil, nil)
	alone := reference.apply(t, request("v1", "b", "")).Revision.Requested.Digest
	both := reference.apply(t, request("v2", "a", "")).Revision.Requested.Digest

	b := newBench(t, nil, nil)
	b.apply(t, inline("v1", files{"a": "1"}))
	if _, err := b.Apply(t.Context(), request("v2", "b", alone)); !errors.Is(err, hotupdate.ErrDigest) {
		t.Errorf("digest of the sent file: %v", err)
	}
	b.check(t, files{"a": "1"})
	b.apply(t, request("v2", "b", both))
	b.check(t, files{"a": "1", "b": "1"})
}

// A file that the program has written in place does not prevent that another one of its files is taken over.
func TestAChangedFileBesideAReplacedLink(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		request hotupdate.Request
		want    files
		mended  []string
	}{
		"all are sent":  {inline("v3", files{"a": "3", "g": "3"}), files{"a": "3", "g": "3"}, nil},
		"both are kept": {func() hotupdate.Request { r := inline("v3", files{"x": "3"}); r.Keep = true; return r }(), files{"a": "1", "g": "1", "x": "3"}, []string{"a", "g"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, nil)
			b.apply(t, inline("v1", files{"a": "1", "g": "1"}))
			second := inline("v2", files{"x": "2"})
			second.Keep = true
			b.apply(t, second)
			if err := os.WriteFile(filepath.Join(b.dir, "a"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			b.replaceLink(t, "g")
			res, err := b.Apply(t.Context(), tt.request)
			if err != nil {
				t.Fatal(err)
			}
			b.check(t, tt.want)
			if diff := cmp.Diff(tt.mended, res.Mended); diff != "" {
				t.Errorf("mended (-want +got):\n%s", diff)
			}
		})
	}
}
