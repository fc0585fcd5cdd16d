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

func TestValues(t *testing.T) {
	t.Parallel()
	got, err := Values([]string{"host:5000/team/refit-daemon:dev@sha256:0a", "host/refit-manager:v1", "host:5000/team/refit-sidecar:dev", "host:5000/testapp:dev"})
	want := []string{
		"--set-string=daemon.image.repository=host:5000/team/refit-daemon", "--set-string=daemon.image.tag=dev", "--set-string=daemon.image.digest=sha256:0a",
		"--set-string=manager.image.repository=host/refit-manager", "--set-string=manager.image.tag=v1",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, image := range []string{"refit-daemon", "host:5000/refit-daemon"} {
		if _, err := Values([]string{image}); err == nil {
			t.Errorf("%s is taken", image)
		}
	}
}
