package wording_test

import (
	"testing"

	"github.com/refit-project/refit/internal/wording"
)

func TestCountAgreesWithItsNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 pods are", 1: "1 pod is", 2: "2 pods are"} {
		if got := wording.Count(n, "pod is", "pods are"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
