package load

import "testing"

func TestAbsentImageIsOfTheSameRegistry(t *testing.T) {
	t.Parallel()
	const want = "127.0.0.1:5000/refit/testapp:absent-pull-1"
	for _, image := range []string{
		"127.0.0.1:5000/refit/testapp:dev@sha256:0123", "127.0.0.1:5000/refit/testapp:dev", "127.0.0.1:5000/refit/testapp",
	} {
		if got := absentImage(image, "pull-1"); got != want {
			t.Errorf("of %s: %s, want %s", image, got, want)
		}
	}
}
