package hotupdate_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/refit-project/refit/hotupdate"
)

// A server may answer that nothing has changed although it has, if its ETag consists of time and size.
func TestAnotherDigestIsNotAnsweredByWhatIsThere(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"always"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "old")
	})
	b := newBench(t, nil, nil)
	request := hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{URL: url, Name: "a"}}}
	b.apply(t, request)
	request.Sources[0].SHA256 = sum("new")
	if res, err := b.Apply(t.Context(), request); !errors.Is(err, hotupdate.ErrDigest) {
		t.Errorf("%+v, %v", res, err)
	}
}

// Sending a version again without the other files removes them, although its own files are already in force.
func TestOtherFilesAreRemovedByTheSameVersion(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"b"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "1")
	})
	for name, digest := range map[string]string{"with digest": sum("1"), "without": ""} {
		b := newBench(t, nil, nil)
		b.apply(t, inline("v1", files{"a": "1"}))
		request := hotupdate.Request{Version: "v2", Keep: true, Sources: []hotupdate.Source{{URL: url, Name: "b", SHA256: digest}}}
		b.apply(t, request)
		b.check(t, files{"a": "1", "b": "1"})
		request.Keep = false
		if res := b.apply(t, request); !res.Changed {
			t.Errorf("%s: unchanged", name)
		}
		b.check(t, files{"b": "1"})
	}
}

// A script was sent without execute permission, and is sent again with it and the same content.
func TestAnotherModeIsSetByTheSameVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	request := hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{Name: "run", Data: []byte("1"), SHA256: sum("1")}}}
	b.apply(t, request)
	request.Sources[0].Mode = 0o755
	res := b.apply(t, request)
	if info, err := os.Stat(filepath.Join(b.dir, "run")); err != nil || info.Mode().Perm() != 0o755 || !res.Changed {
		t.Errorf("%v, %v, changed %t; want mode 0755", info, err, res.Changed)
	}
}
