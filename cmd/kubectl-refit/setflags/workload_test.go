package setflags_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/cmd/kubectl-refit/setflags"
	"github.com/refit-project/refit/rollout/cli/policy"
)

// Without a flag a policy stays as it is.
func TestFlagsOfAWorkloadAreWrittenToItsPolicy(t *testing.T) {
	t.Parallel()
	ignore, respect := v1alpha1.PodDisruptionBudgetIgnore, v1alpha1.PodDisruptionBudgetRespect
	for args, want := range map[string]policy.SetConfig{
		"": {Options: &policy.Options{}, CreatePolicy: true, Wait: true},
		"--max-unavailable=1 --drain-seconds=0 --ignore-pod-disruption-budgets=false": {
			Options: &policy.Options{MaxUnavailable: new(intstr.FromInt32(1)), DrainSeconds: new(int32(0)), PodDisruptionBudgetPolicy: &respect}, CreatePolicy: true, Wait: true,
		},
		"--canary=10% --ignore-pod-disruption-budgets --allow-replacement": {
			Options: &policy.Options{Canary: new(intstr.FromString("10%")), PodDisruptionBudgetPolicy: &ignore}, CreatePolicy: true, Wait: true, AllowReplacement: true,
		},
		"--canary=none --wait=false --create-policy=false --dry-run --timeout=1m": {
			Config: policy.Config{Timeout: time.Minute}, Options: &policy.Options{NoCanary: true}, DryRun: true,
		},
	} {
		var f setflags.Flags
		var w setflags.Workload
		flags := pflag.NewFlagSet("set", pflag.ContinueOnError)
		f.Add(flags)
		w.Add(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		got, err := w.Config(&f, flags)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b policy.Config) bool { return a.Timeout == b.Timeout })); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", args, err, diff)
		}
	}
}
