package setflags_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/cmd/kubectl-refit/setflags"
	"github.com/refit-project/refit/inplace/plan"
)

// What the user has typed is what the update does; what was not typed is as in docs/inplace.md.
func TestFlagsAreThoseOfTheUpdate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args           []string
		options        plan.Options
		timeout        time.Duration
		dry, pulls     bool
		maxUnavailable intstr.IntOrString
		ignoreBudgets  bool
	}{
		"none": {nil, plan.Options{}, 0, false, true, intstr.FromInt32(1), false},
		"order, drain": {[]string{"--order=a,b", "--order=c", "--drain-seconds=7"}, plan.Options{Order: [][]string{{"a", "b"}, {"c"}}, DrainSeconds: 7},
			0, false, true, intstr.FromInt32(1), false},
		"time, dry run":                {[]string{"--timeout=1m", "--dry-run"}, plan.Options{}, time.Minute, true, true, intstr.FromInt32(1), false},
		"images are present":           {[]string{"--images-present"}, plan.Options{ImagesPresent: true}, 0, false, false, intstr.FromInt32(1), false},
		"images are pulled by kubelet": {[]string{"--no-pull"}, plan.Options{}, 0, false, false, intstr.FromInt32(1), false},
		"limits":                       {[]string{"--max-unavailable=50%", "--ignore-pod-disruption-budgets"}, plan.Options{}, 0, false, true, intstr.FromString("50%"), true},
	} {
		var f setflags.Flags
		flags := pflag.NewFlagSet("set", pflag.ContinueOnError)
		f.Add(flags)
		if err := flags.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		if err := f.Check(flags); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		config, err := f.Config(&rest.Config{Host: "http://127.0.0.1:1"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tt.options, config.Options); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if config.Timeout != tt.timeout || config.DryRun != tt.dry || (config.Puller != nil) != tt.pulls ||
			config.Turn.MaxUnavailable != tt.maxUnavailable || config.Turn.IgnorePodDisruptionBudgets != tt.ignoreBudgets {
			t.Errorf("%s: %+v, turn %+v", name, config, config.Turn)
		}
	}
	for _, arg := range []string{"--drain-seconds=-1", "--max-unavailable=x", "--max-unavailable=-1"} {
		var f setflags.Flags
		flags := pflag.NewFlagSet("set", pflag.ContinueOnError)
		f.Add(flags)
		if err := flags.Parse([]string{arg}); err != nil {
			t.Fatal(err)
		}
		if err := f.Check(flags); err == nil {
			t.Errorf("%s is accepted", arg)
		}
	}
}
