package plain_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hack/chart/plain"
)

// Files of the folders that are not rendered: a user's own configuration, and a patch.
var written = map[string]bool{"sidecar/30-config.yaml": true, "daemonset/host-network/patch.yaml": true}

func TestPlainManifestsAreWhatTheChartRenders(t *testing.T) {
	t.Parallel()
	deploy := filepath.Join("..", "..", "..", "deploy")
	want, err := plain.Manifests(t.Context(), filepath.Join(deploy, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, folder := range []string{"daemonset", "hold", "hold-webhook", "manager", "pull-secrets", "sidecar"} {
		err := filepath.WalkDir(filepath.Join(deploy, folder), func(path string, entry fs.DirEntry, err error) error {
			name, _ := filepath.Rel(deploy, path)
			if err != nil || filepath.Ext(path) != ".yaml" || written[name] || strings.HasPrefix(name, "sidecar/examples/") {
				return err
			}
			content, err := os.ReadFile(path)
			got[name] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("make generate has not been run (-rendered +there):\n%s", diff)
	}
}
