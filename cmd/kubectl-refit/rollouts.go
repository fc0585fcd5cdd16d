package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cli/completion"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
	"github.com/refit-project/refit/rollout/cli/policy"
	sidecarsetcli "github.com/refit-project/refit/sidecarset/cli"
)

// rollouts makes the commands for the rollouts of all kinds.
type rollouts struct {
	connection  *genericclioptions.ConfigFlags
	sidecarSets sidecarSets
}

func newRollouts(connection *genericclioptions.ConfigFlags) rollouts {
	return rollouts{connection: connection, sidecarSets: sidecarSets{connection: connection, config: &sidecarsetcli.Config{Now: time.Now}}}
}

// kinds are what a command does for each kind of rollout; nil for kinds to which it does not apply.
type kinds struct {
	workload   func(context.Context, policy.Config, policy.Target) error
	restart    func(context.Context, rolloutcli.Config, string) error
	sidecarSet func(context.Context, sidecarsetcli.Config, *console.Output, io.Writer, string) error
}

// subcommand completes a command of rollout. timeout is its flag; nil if it has none.
func (r rollouts) subcommand(cmd *cobra.Command, timeout *time.Duration, does kinds) *cobra.Command {
	cmd.Use += " (KIND/NAME | KIND NAME)"
	if cmd.Long == "" {
		cmd.Long = rolloutLong
	}
	var complete []string
	if does.workload != nil {
		complete = append(complete, completion.Updatable...)
		complete = append(complete, "inplaceupdatepolicy")
	}
	if does.restart != nil {
		complete = append(complete, "restartrollout")
	}
	if does.sidecarSet != nil {
		complete = append(complete, "sidecarset")
	}
	cmd.Args, cmd.ValidArgsFunction = usage.OneObject(), completing(r.connection, objects(complete...))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		object, limit := usage.Object(args), time.Duration(0)
		if timeout != nil {
			limit = *timeout
		}
		kind, name, ok := console.KindName(object)
		switch {
		case ok && console.IsRestartRollout(kind):
			return r.ofRestart(cmd, does.restart, name, limit)
		case ok && console.IsSidecarSet(kind):
			return r.ofSidecarSet(cmd, does.sidecarSet, name, limit)
		}
		return r.ofWorkload(cmd, does.workload, object, limit)
	}
	return cmd
}

// policyConfig is the configuration of the commands for workloads.
func policyConfig(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, timeout time.Duration) (config policy.Config, err error) {
	config.Timeout, config.Output = timeout, console.NewOutput(cmd.OutOrStdout(), terminal(cmd.OutOrStdout()))
	config.API, config.Namespace, err = watcher(connection)
	return config, err
}

func notFor(cmd *cobra.Command, what string) error {
	return fmt.Errorf("%w: %s has no meaning for %s; see kubectl refit rollout --help", console.ErrUsage, cmd.Name(), what)
}

func (r rollouts) ofWorkload(cmd *cobra.Command, run func(context.Context, policy.Config, policy.Target) error, object string, timeout time.Duration) error {
	target, err := policy.ParseTarget(object)
	if err != nil {
		return err
	}
	if run == nil {
		return notFor(cmd, "a workload")
	}
	config, err := policyConfig(cmd, r.connection, timeout)
	if err != nil {
		return err
	}
	return run(cmd.Context(), config, target)
}

func (r rollouts) ofRestart(cmd *cobra.Command, run func(context.Context, rolloutcli.Config, string) error, name string, timeout time.Duration) error {
	if run == nil {
		return notFor(cmd, "a RestartRollout")
	}
	config := rolloutcli.Config{Timeout: timeout, Wait: true, Output: console.NewOutput(cmd.OutOrStdout(), terminal(cmd.OutOrStdout()))}
	var err error
	if config.API, config.Namespace, err = watcher(r.connection); err != nil {
		return err
	}
	return run(cmd.Context(), config, name)
}

func (r rollouts) ofSidecarSet(cmd *cobra.Command, run func(context.Context, sidecarsetcli.Config, *console.Output, io.Writer, string) error, name string, timeout time.Duration) error {
	if run == nil {
		return notFor(cmd, "a SidecarSet")
	}
	if _, err := r.sidecarSets.open(); err != nil {
		return err
	}
	ctx := cmd.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the rollout is %w", console.ErrTimeout))
		defer cancel()
	}
	return run(ctx, *r.sidecarSets.config, console.NewOutput(cmd.OutOrStdout(), terminal(cmd.OutOrStdout())), cmd.OutOrStdout(), name)
}
