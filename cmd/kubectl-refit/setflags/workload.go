package setflags

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/policy"
)

// Workload are the values of the flags that are about workloads.
type Workload struct {
	canary                               string
	wait, createPolicy, allowReplacement bool
}

// The flags that have a meaning for one of the two only.
var (
	ofWorkloads = []string{"canary", "wait", "create-policy", "allow-replacement"}
	ofPods      = []string{"order", "images-present", "no-pull"}
)

// Add adds the flags to a command.
func (w *Workload) Add(flags *pflag.FlagSet) {
	flags.StringVar(&w.canary, "canary", "", "for a workload: update this `number or percentage` of its pods first, and the others when kubectl refit rollout promote is run; none removes the steps of its InPlaceUpdatePolicy")
	flags.BoolVar(&w.wait, "wait", true, "for a workload: follow the update to its end, or to a pause that somebody has to end")
	flags.BoolVar(&w.createPolicy, "create-policy", true, "for a workload without an InPlaceUpdatePolicy: create one, which stays; false refuses the change")
	flags.BoolVar(&w.allowReplacement, "allow-replacement", false, "for a workload: change the template although its pods have to be replaced for that")
}

// CheckPod refuses flags that have no meaning for a pod.
func (w *Workload) CheckPod(flags *pflag.FlagSet) error { return without(flags, "a pod", ofWorkloads) }

func without(flags *pflag.FlagSet, what string, names []string) error {
	for _, name := range names {
		if flags.Changed(name) {
			return fmt.Errorf("%w: --%s has no meaning for %s", console.ErrUsage, name, what)
		}
	}
	return nil
}

// Config returns the configuration of a change of a workload, without connection and output. Flags that are not set leave the policy as
// it is.
func (w *Workload) Config(f *Flags, flags *pflag.FlagSet) (policy.SetConfig, error) {
	config := policy.SetConfig{Options: &policy.Options{}, CreatePolicy: w.createPolicy, AllowReplacement: w.allowReplacement, Wait: w.wait, DryRun: f.dryRun}
	if err := without(flags, "a workload", ofPods); err != nil {
		return config, err
	}
	if err := f.Check(flags); err != nil {
		return config, err
	}
	config.Timeout = f.timeout
	if flags.Changed("max-unavailable") {
		config.Options.MaxUnavailable = new(intstr.Parse(f.maxUnavailable))
	}
	if flags.Changed("drain-seconds") {
		config.Options.DrainSeconds = &f.drain
	}
	if flags.Changed("ignore-pod-disruption-budgets") {
		is := v1alpha1.PodDisruptionBudgetRespect
		if f.ignoreBudgets {
			is = v1alpha1.PodDisruptionBudgetIgnore
		}
		config.Options.PodDisruptionBudgetPolicy = &is
	}
	switch {
	case w.canary == "none":
		config.Options.NoCanary = true
	case w.canary != "":
		if err := usage.Pods("canary", w.canary); err != nil {
			return config, err
		}
		config.Options.Canary = new(intstr.Parse(w.canary))
	}
	return config, nil
}
