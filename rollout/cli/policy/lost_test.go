package policy_test

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/policy"
)

// The update may have begun. Without the policy all pods would be updated, without the pause of the canary.
func TestPolicyStaysIfTheAnswerToTheChangeIsLost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		interrupted bool
		timeout     time.Duration
		code        int
		word        string
	}{
		"interrupted":         {true, 0, console.ExitInterrupted, "interrupted; "},
		"timeout":             {false, time.Minute, console.ExitTimeout, "not done in time; "},
		"connection was lost": {false, 0, console.ExitFailed, "EOF; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.config.Options, f.config.Timeout = &policy.Options{Canary: new(intstr.FromString("10%"))}, tc.timeout
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f.lost = func(ctx context.Context) error {
					if tc.interrupted {
						cancel()
					}
					if tc.interrupted || tc.timeout > 0 {
						<-ctx.Done()
					}
					return &url.Error{Op: "Patch", URL: "https://api.test", Err: cmp.Or(ctx.Err(), io.EOF)}
				}
				err := policy.Set(ctx, f.config, web, image("app:3"))
				f.expects(t, err, tc.code, tc.word, "not known whether the template of deployment/web was changed", "InPlaceUpdatePolicy web stays",
					"kubectl refit rollout status deployment/web --namespace=shop")
				if all := f.policies(t); len(all) != 1 || len(all[0].Spec.Steps) != 1 || strings.Contains(f.out.String(), "deleted again") {
					t.Errorf("policies %+v\n%s", all, f.out.String())
				}
			})
		})
	}
}
