package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/util/intstr"

	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/turn"
)

func TestFlagThatLiftsOneLimitLeavesTheOther(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limits turn.Config
		words  string // of what it would wait for
	}{
		"all pods may be unavailable":          {turn.Config{MaxUnavailable: intstr.FromString("100%")}, "PodDisruptionBudget strict allows"},
		"PodDisruptionBudgets are not asked":   {turn.Config{MaxUnavailable: intstr.FromInt32(1), IgnorePodDisruptionBudgets: true}, "as many pods of its workload are unavailable"},
		"neither limit: nothing is waited for": {turn.Config{MaxUnavailable: intstr.FromString("100%"), IgnorePodDisruptionBudgets: true}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkload(t, 2, noDisruptions())
			w.servers[1].broken["app:1"] = "Unknown" // not ready, and nothing says that it stays so
			w.servers[1].kubelet()
			command := <-w.start(t.Context(), 0, inplacecli.Config{DryRun: true, Turn: &tt.limits}, images(t, "app=app:2"))
			if command.err != nil || strings.Contains(command.said, "would have to wait now") != (tt.words != "") || !strings.Contains(command.said, tt.words) {
				t.Errorf("%s: %v; said:\n%s", name, command.err, command.said)
			}
		})
	}
}
