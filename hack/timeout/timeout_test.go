package timeout_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/hack/timeout"
)

func TestTimeoutsAreMultipliedByTimeoutFactor(t *testing.T) {
	for factor, want := range map[string]time.Duration{
		"": time.Minute, "20": 20 * time.Minute, "1": time.Minute, "0": time.Minute, "-3": time.Minute, "300": time.Minute, "x": time.Minute,
	} {
		t.Setenv("TIMEOUT_FACTOR", factor)
		if got := timeout.Scaled(time.Minute); got != want {
			t.Errorf("TIMEOUT_FACTOR=%q: %s, want %s", factor, got, want)
		}
	}
}
