package budget_test

import (
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// FuzzClaims makes claims of their parts: whatever one says, it holds up others for two minutes at most.
func FuzzClaims(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed)
	}
	f.Add([]byte(budget.NewClaim("me", now).String()))
	f.Fuzz(func(t *testing.T, seed []byte) {
		for _, text := range []string{string(hostile.JSON(&budget.Claim{}, seed)), string(seed)} {
			watchdog.Watch(t, func() {
				claim := budget.ClaimOn(podOf(true, annotated(v1beta1.AnnotationDisruptionClaim, text)), now)
				if claim != nil && claim.Until.After(now.Add(2*budget.ClaimFor)) {
					t.Errorf("until %s", claim.Until)
				}
			})
		}
	})
}
