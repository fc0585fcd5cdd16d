package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithImages(t *testing.T) {
	t.Parallel()
	config := Config{Images: []string{"host:5000/team/refit-daemon:dev@sha256:0a", "host:5000/team/refit-manager:dev"}}
	for name, tc := range map[string]struct{ manifest, want string }{
		"replaced":              {"  image: refit.dev/refit-daemon:latest\n  args: []", "  image: host:5000/team/refit-daemon:dev@sha256:0a\n  args: []"},
		"with a port":           {"- image: localhost:5000/refit-manager:v1\n", "- image: host:5000/team/refit-manager:dev\n"},
		"somebody else's":       {"image: docker.io/library/busybox:1.36\n", "image: docker.io/library/busybox:1.36\n"},
		"no more than the name": {"image: a/my-refit-daemon:v1\n", "image: a/my-refit-daemon:v1\n"},
		"not a field":           {"# image: refit.dev/refit-daemon:latest\n", "# image: refit.dev/refit-daemon:latest\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, string(config.withImages([]byte(tc.manifest)))); diff != "" {
				t.Errorf("manifest (-want +got):\n%s", diff)
			}
		})
	}
}
