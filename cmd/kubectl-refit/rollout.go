package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cli/completion"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/policy"
)

const rolloutLong = `Look at the update of a workload with an InPlaceUpdatePolicy, and pause, promote or undo it. The target is a Deployment,
StatefulSet or DaemonSet, or its inplaceupdatepolicy/NAME.

  status   follow the update until every pod has the template and is available
  pause    begin no further pod; pods whose update has begun are completed
  resume   continue after pause
  promote  end the pause of the present step, as of kubectl refit set --canary
  undo     write the template of an earlier revision, also while an update is in progress
  history  the revisions, with their images

kubectl rollout does not know that Refit holds a workload during an update: of a StatefulSet it says that it is complete, it refuses a
DaemonSet, and it refuses to undo a Deployment until the update has ended.

Exit codes: 0 done, 1 failed, 2 refused (nothing has been changed) or wrong usage, 124 not done within --timeout, 130 interrupted.`

const rolloutStatusLong = `Follow the update of the pods of a workload to its present template until every pod has it and is available. Pauses are waited for, and
what ends them is printed. With a partition it ends when all other pods have the template.

Exit codes: 0 every pod has the template and is available (with --watch=false: always), 1 failed: somebody has to act, 2 refused or wrong
usage, 124 not done within --timeout, 130 interrupted.`

const rolloutUndoLong = `Write the template of an earlier revision to a workload, and follow the update in place of its pods. Without --to-revision it is the
last revision with another template: while an update is in progress the template before it, so that its pods go back.

Exit codes: 0 the pods have the template, 1 failed, 2 refused (nothing has been changed) or wrong usage, 124 not done within --timeout,
130 interrupted.`

func rolloutCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollout", Short: "Look at updates of workloads in place, pause, promote and undo them", Long: rolloutLong, Args: usage.UnknownSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(rolloutStatus(connection), rolloutPause(connection, true), rolloutPause(connection, false), rolloutPromote(connection),
		rolloutUndo(connection), rolloutHistory(connection))
	return cmd
}

// policyConfig is the configuration of the commands for workloads.
func policyConfig(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, timeout time.Duration) (config policy.Config, err error) {
	config.Timeout, config.Output = timeout, console.NewOutput(cmd.OutOrStdout(), terminal(cmd.OutOrStdout()))
	config.API, config.Namespace, err = watcher(connection)
	return config, err
}

// rolloutSubcommand returns a command for a workload. run is called with its configuration, which has no timeout.
func rolloutSubcommand(connection *genericclioptions.ConfigFlags, cmd *cobra.Command, run func(context.Context, policy.Config, policy.Target) error) *cobra.Command {
	cmd.Use += " (KIND/NAME | KIND NAME)"
	cmd.Args, cmd.ValidArgsFunction = usage.OneObject(), completing(connection, objects(append(completion.Updatable, "inplaceupdatepolicy")...))
	if cmd.Long == "" {
		cmd.Long = rolloutLong
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		target, err := policy.ParseTarget(usage.Object(args))
		if err != nil {
			return err
		}
		config, err := policyConfig(cmd, connection, 0)
		if err != nil {
			return err
		}
		return run(cmd.Context(), config, target)
	}
	return cmd
}

func rolloutStatus(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var watch bool
	var timeout time.Duration
	cmd := rolloutSubcommand(connection, &cobra.Command{
		Use: "status", Short: "Follow the update of a workload to its end", Long: rolloutStatusLong,
		Example: "  kubectl refit rollout status deployment/web --timeout=10m\n  kubectl refit rollout status statefulset/db --watch=false",
	}, func(ctx context.Context, config policy.Config, target policy.Target) error {
		config.Timeout = timeout
		return policy.Status(ctx, config, target, watch)
	})
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "follow the update; false prints how it stands")
	timeoutFlag(cmd, &timeout)
	return cmd
}

func timeoutFlag(cmd *cobra.Command, timeout *time.Duration) {
	usage.TimeoutFlag(cmd.Flags(), timeout, "the update continues")
}

func rolloutPause(connection *genericclioptions.ConfigFlags, paused bool) *cobra.Command {
	cmd := &cobra.Command{Use: "resume", Short: "Continue after pause", Example: "  kubectl refit rollout resume deployment/web"}
	if paused {
		cmd = &cobra.Command{Use: "pause", Short: "Begin no further pod", Example: "  kubectl refit rollout pause deployment/web"}
	}
	return rolloutSubcommand(connection, cmd, func(ctx context.Context, config policy.Config, target policy.Target) error {
		return policy.Pause(ctx, config, target, paused)
	})
}

func rolloutPromote(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var full bool
	cmd := rolloutSubcommand(connection, &cobra.Command{
		Use: "promote", Short: "End the pause of the present step",
		Example: "  # the next step\n  kubectl refit rollout promote deployment/web\n\n  # no further pause in this update\n  kubectl refit rollout promote deployment/web --full",
	}, func(ctx context.Context, config policy.Config, target policy.Target) error {
		return policy.Promote(ctx, config, target, full)
	})
	cmd.Flags().BoolVar(&full, "full", false, "end the pauses of all steps of this update")
	return cmd
}

func rolloutUndo(connection *genericclioptions.ConfigFlags) *cobra.Command {
	undo := policy.UndoConfig{SetConfig: policy.SetConfig{Wait: true}}
	var timeout time.Duration
	cmd := rolloutSubcommand(connection, &cobra.Command{
		Use: "undo", Short: "Write the template of an earlier revision", Long: rolloutUndoLong,
		Example: "  kubectl refit rollout undo deployment/web\n  kubectl refit rollout undo deployment/web --to-revision=3 --dry-run",
	}, func(ctx context.Context, config policy.Config, target policy.Target) error {
		config.Timeout = timeout
		undo.Config = config
		return policy.Undo(ctx, undo, target)
	})
	cmd.Flags().Int64Var(&undo.Revision, "to-revision", 0, "`number` of the revision, see history; 0 is the last one with another template")
	cmd.Flags().BoolVar(&undo.Wait, "wait", true, "follow the update to its end, or to a pause that somebody has to end")
	cmd.Flags().BoolVar(&undo.AllowReplacement, "allow-replacement", false, "write the template although the pods have to be replaced for that")
	usage.DryRunFlag(cmd.Flags(), &undo.DryRun, "say of each pod what would happen, and do nothing")
	timeoutFlag(cmd, &timeout)
	return cmd
}

func rolloutHistory(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var revision int64
	var cmd *cobra.Command
	cmd = rolloutSubcommand(connection, &cobra.Command{
		Use: "history", Short: "List the revisions of a workload",
		Example: "  kubectl refit rollout history deployment/web\n  kubectl refit rollout history deployment/web --revision=2",
	}, func(ctx context.Context, config policy.Config, target policy.Target) error {
		return policy.History(ctx, config, cmd.OutOrStdout(), target, revision)
	})
	cmd.Flags().Int64Var(&revision, "revision", 0, "print the template of the revision with this `number`")
	return cmd
}
