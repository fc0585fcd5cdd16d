// Package setflags has the flags that the commands of kubectl refit set share, and converts them to the configuration of an
// update.
package setflags

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	imagecli "github.com/refit-project/refit/image/cli"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/cli/turn"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/kube"
)

// Flags are the values of the flags.
type Flags struct {
	dryRun         bool
	timeout        time.Duration
	drain          int32
	order          []string
	present        bool
	noPull         bool
	maxUnavailable string
	ignoreBudgets  bool
}

// Add adds the flags to a command.
func (f *Flags) Add(flags *pflag.FlagSet) {
	usage.DryRunFlag(flags, &f.dryRun, "explain what would be done, stage by stage, or refused, and do nothing")
	usage.TimeoutFlag(flags, &f.timeout, "the update of a workload continues")
	flags.Int32Var(&f.drain, "drain-seconds", 0, "`seconds` for which a pod is out of its Services before its first container is stopped; it needs the readiness gate KruisePodReady or InPlaceUpdateReady")
	flags.StringArrayVar(&f.order, "order", nil, "`CONTAINER[,CONTAINER...]` that are replaced together; repeated for those that follow when these are ready")
	flags.BoolVar(&f.present, "images-present", false, "the new images are on the node: allow a container with restartPolicy Never to get one")
	flags.BoolVar(&f.noPull, "no-pull", false, "do not pull new images onto the node first (by an ImagePullJob): kubelet then pulls them when the container has been stopped")
	flags.StringVar(&f.maxUnavailable, "max-unavailable", "1", "how many of the pods of the workload may be unavailable at a time, as `number or percentage`: the update waits before it stops a container")
	flags.BoolVar(&f.ignoreBudgets, "ignore-pod-disruption-budgets", false, "stop containers of the pod although a PodDisruptionBudget allows no disruption")
}

// Check refuses invalid values.
func (f *Flags) Check(flags *pflag.FlagSet) error {
	if err := usage.NotNegative(flags, "drain-seconds"); err != nil {
		return err
	}
	return usage.MaxUnavailable(f.maxUnavailable)
}

// Config returns the configuration of an update without its output. Nothing is sent.
func (f *Flags) Config(to *rest.Config) (inplacecli.Config, error) {
	client, err := kube.NewClient(to)
	if err != nil {
		return inplacecli.Config{}, err
	}
	var puller inplacecli.Puller
	if !f.noPull && !f.present {
		puller = imagecli.Jobs{Open: func(ctx context.Context) (imagecli.API, error) { return client.ImagePullJobs(ctx) }}
	}
	turns, err := turn.Connect(to, "kubectl refit set", intstr.Parse(f.maxUnavailable), f.ignoreBudgets)
	if err != nil {
		return inplacecli.Config{}, fmt.Errorf("prepare to wait for other pods: %w", err)
	}
	return inplacecli.Config{
		API: inplacecli.Cluster{Client: client}, Puller: puller, Turn: turns,
		Options: plan.Options{Order: change.Groups(f.order), DrainSeconds: f.drain, ImagesPresent: f.present},
		Timeout: f.timeout, DryRun: f.dryRun,
	}, nil
}
