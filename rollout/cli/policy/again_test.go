package policy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/policy"
)

// What a workload has already may still be in progress.
func TestSetAgainFollowsTheUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, existing(nil))
	f.config.Options = &policy.Options{MaxUnavailable: new(intstr.FromString("50%"))}
	f.config.DryRun = true
	f.expects(t, policy.Set(t.Context(), f.config, web, image("app:2")), console.ExitDone, `InPlaceUpdatePolicy gently would be changed, for this and later updates: {"spec":{"maxUnavailable":"50%"}}`)
	if is := f.policies(t)[0].Spec.MaxUnavailable; is != nil {
		t.Errorf("maxUnavailable %s after a dry run", is)
	}
	f.config.DryRun = false
	f.expects(t, policy.Set(t.Context(), f.config, web, image("app:2")), console.ExitDone, "deployment/web unchanged: it has this template already", "InPlaceUpdatePolicy gently changed", "2 of 2 pods have the template")
	if is := f.policies(t)[0].Spec.MaxUnavailable; is.String() != "50%" {
		t.Errorf("maxUnavailable %s", is)
	}
}
