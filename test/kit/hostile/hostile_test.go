package hostile_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/test/kit/hostile"
)

func TestSeedsHaveTheAttacksInTheirPlaces(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	valid := 0
	for _, seed := range hostile.Seeds() {
		made := hostile.JSON(&corev1.Pod{}, seed)
		if len(made) > 4<<20 {
			t.Errorf("%v: %d bytes", seed, len(made))
		}
		if json.Valid(made) {
			valid++
		}
		all.Write(made)
	}
	if most := len(hostile.Seeds()) - 3; valid < most {
		t.Errorf("only %d of the seeds are JSON, want at least %d", valid, most)
	}
	for _, part := range []string{
		`"requests":{"app":"1e2147483647"}`, `"creationTimestamp":"9999-12-31T23:59:59Z"`, `"startedAt":"200000-01-01T00:00:00Z"`,
		`"containers":null`, `"SPEC":{`, strings.Repeat("[", 10_000), strings.Repeat("{},", 20_000), "\xff",
	} {
		if !strings.Contains(all.String(), part) {
			t.Errorf("no seed has %.40q", part)
		}
	}
}
