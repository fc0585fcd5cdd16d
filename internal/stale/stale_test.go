package stale_test

import (
	"testing"

	"github.com/refit-project/refit/internal/stale"
)

func TestVersionsAreComparedAsNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version, than string
		older, newer  bool
	}{
		{"9", "10", true, false},
		{"10", "9", false, true},
		{"10", "10", false, false},
		{"", "10", false, true},
		{"10", "", false, true},
		{"x", "10", false, true},
	} {
		if older, newer := stale.Older(tt.version, tt.than), stale.Newer(tt.version, tt.than); older != tt.older || newer != tt.newer {
			t.Errorf("%q and %q: older %t, newer %t", tt.version, tt.than, older, newer)
		}
	}
}
