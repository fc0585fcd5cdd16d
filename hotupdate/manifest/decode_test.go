package manifest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate/manifest"
)

func TestManifestIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	hostile := `"}` + strings.Repeat(",", 1000) + `\`
	want := manifest.Revision{Version: "v2", ID: "000001-aaaaaaaaaaaa", Digest: "d",
		Sources: []manifest.Origin{{URL: "http://o/a", Name: "a", SHA256: "1"}, {Name: hostile}},
		Files:   []manifest.File{{Name: "a", SHA256: "1", Size: 3}, {Name: hostile, Executable: true}, {Name: "[{", SHA256: "2"}},
		Requested: manifest.Requested{Digest: "set",
			Sources: []manifest.Origin{{URL: "http://o/b", Name: "b"}, {Name: "c"}},
			Hidden:  []manifest.File{{Name: "d", SHA256: "4"}, {Name: "e"}},
		}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.Decode(text)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, empty := range []string{`{"version":"v2","files":[],"sources":[]}`, `{"version":"v2","files":null}`, `{"version":"v2"}`} {
		if got, err := manifest.Decode([]byte(empty)); err != nil || got.Version != "v2" || len(got.Files)+len(got.Sources) > 0 {
			t.Errorf("%s: %+v, %v", empty, got, err)
		}
	}
}

// Others may have replaced the manifest: a list of many elements in little text would take all memory.
func TestManifestThatIsNoneOfOursIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", "[]", "3", `{"version":3}`, `{"files":{}}`, `{"files":3}`, `{"files":[3]}`, `{"files":[{"size":"x"}]}`, `{"requested":{"hidden":"x"}}`} {
		if got, err := manifest.Decode([]byte(text)); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for _, form := range []string{`{"files":%s}`, `{"sources":%s}`, `{"requested":{"sources":%s}}`, `{"requested":{"hidden":%s}}`} {
		for n, fits := range map[int]bool{1: true, 64: true, 67: true, 68: false, 1000: false} { // 67 are of 202 bytes
			list := "[" + strings.Repeat("{},", n-1) + "{}]"
			got, err := manifest.Decode(fmt.Appendf(nil, form, list))
			read := len(got.Files) + len(got.Sources) + len(got.Requested.Sources) + len(got.Requested.Hidden)
			if fits != (err == nil) || fits && read != n {
				t.Errorf(form+": %d elements, read %d: %v", "LIST", n, read, err)
			}
			if !fits && !strings.Contains(err.Error(), fmt.Sprintf("%d elements in %d bytes", n, len(list))) {
				t.Errorf(form+": %v", "LIST", err)
			}
		}
	}
}
