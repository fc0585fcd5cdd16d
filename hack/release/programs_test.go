package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/refit-project/refit/hack/images/build"
)

func TestReleaseWithALargeKubectlRefitFails(t *testing.T) {
	t.Parallel()
	root := checkout(t)
	r := &release{
		Options: Options{Root: root, Out: t.TempDir(), Version: "v1.2.3", Platforms: []string{"linux/amd64"}},
		builder: &build.Builder{Version: "v1.2.3", Binaries: filepath.Join(root, "dist")}, kubectlBytes: 1000, sums: map[string]string{},
	}
	err := r.kubectl(t.Context())
	if err == nil || !strings.Contains(err.Error(), "kubectl-refit for linux/amd64: it has ") || !strings.Contains(err.Error(), "at most 1000 are allowed") {
		t.Errorf("err = %v", err)
	}
}
