package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
	"github.com/refit-project/refit/rollout/cli/policy"
	sidecarsetcli "github.com/refit-project/refit/sidecarset/cli"
)

const rolloutLong = `Look at rollouts, and pause, end and undo them. The target is a Deployment, StatefulSet or DaemonSet with an InPlaceUpdatePolicy, or its
inplaceupdatepolicy/NAME; restartrollout/NAME, as kubectl refit restart has created it; or sidecarset/NAME.

  status   follow the rollout to its end
  pause    begin no further pod; pods that have begun are completed
  resume   continue after pause
  promote  end the pause of the present step, as of kubectl refit set --canary (workloads)
  abort    end a restart; pods that have begun are completed (RestartRollouts)
  undo     write an earlier revision, also while an update is in progress (workloads, SidecarSets)
  history  the revisions, with their images (workloads, SidecarSets)

kubectl rollout does not know that Refit holds a workload during an update: of a StatefulSet it says that it is complete, it refuses a
DaemonSet, and it refuses to undo a Deployment until the update has ended.

Exit codes: 0 done, 1 failed, 2 refused (nothing has been changed) or wrong usage, 124 not done within --timeout, 130 interrupted.`

const rolloutStatusLong = `Follow the update of the pods of a workload to its present template until every pod has it and is available. Pauses are waited for, and
what ends them is printed. With a partition it ends when all other pods have the template. A RestartRollout is followed until it has
ended, and a SidecarSet until all of its pods are updated.

Exit codes: 0 every pod has the template and is available (with --watch=false: always), 1 failed: somebody has to act, 2 refused or wrong
usage, 124 not done within --timeout, 130 interrupted.`

const rolloutAbortLong = `End a restart that kubectl refit restart, a RestartSchedule or a changed ConfigMap has begun. No restart begins any more; the RestartRollout fails when
the pods that have begun are completed, and is kept with its requests as another that has ended. It cannot be continued.

Exit codes: 0 done, 1 failed, 2 refused (nothing has been changed) or wrong usage.`

const rolloutUndoLong = `Write the template of an earlier revision to a workload, and follow the update in place of its pods. Without --to-revision it is the
last revision with another template: while an update is in progress the template before it, so that its pods go back. Of a SidecarSet
containers, volumes, metadata and customVersion are written, and nobody waits for its pods.

Exit codes: 0 the pods have the template, 1 failed, 2 refused (nothing has been changed) or wrong usage, 124 not done within --timeout,
130 interrupted.`

func rolloutCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollout", Short: "Look at rollouts, pause, end and undo them", Long: rolloutLong, Args: usage.UnknownSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	r := newRollouts(connection)
	r.sidecarSets.systemFlag(cmd)
	cmd.AddCommand(r.status(), r.pause(true), r.pause(false), r.promote(), r.abort(), r.undo(), r.history())
	return cmd
}

func timeoutFlag(cmd *cobra.Command, timeout *time.Duration) {
	usage.TimeoutFlag(cmd.Flags(), timeout, "the update continues")
}

func (r rollouts) status() *cobra.Command {
	var watch bool
	var timeout time.Duration
	cmd := r.subcommand(&cobra.Command{
		Use: "status", Short: "Follow a rollout to its end", Long: rolloutStatusLong,
		Example: "  kubectl refit rollout status deployment/web --timeout=10m\n  kubectl refit rollout status restartrollout/web-x7k2p\n  kubectl refit rollout status statefulset/db --watch=false",
	}, &timeout, kinds{
		workload: func(ctx context.Context, config policy.Config, target policy.Target) error {
			return policy.Status(ctx, config, target, watch)
		},
		restart: func(ctx context.Context, config rolloutcli.Config, name string) error {
			return rolloutcli.Status(ctx, config, name, watch)
		},
		sidecarSet: func(ctx context.Context, config sidecarsetcli.Config, output *console.Output, out io.Writer, name string) error {
			if !watch {
				return config.Status(ctx, table.Options{}, out, name)
			}
			return config.Follow(ctx, output, name)
		},
	})
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "follow the rollout; false prints how it stands")
	timeoutFlag(cmd, &timeout)
	return cmd
}

func (r rollouts) pause(paused bool) *cobra.Command {
	cmd := &cobra.Command{Use: "resume", Short: "Continue after pause", Example: "  kubectl refit rollout resume deployment/web"}
	if paused {
		cmd = &cobra.Command{Use: "pause", Short: "Begin no further pod", Example: "  kubectl refit rollout pause deployment/web\n  kubectl refit rollout pause restartrollout/web-x7k2p"}
	}
	return r.subcommand(cmd, nil, kinds{
		workload: func(ctx context.Context, config policy.Config, target policy.Target) error {
			return policy.Pause(ctx, config, target, paused)
		},
		restart: func(ctx context.Context, config rolloutcli.Config, name string) error {
			return rolloutcli.Pause(ctx, config, name, paused)
		},
		sidecarSet: func(ctx context.Context, config sidecarsetcli.Config, _ *console.Output, out io.Writer, name string) error {
			return config.Pause(ctx, out, name, paused)
		},
	})
}

func (r rollouts) promote() *cobra.Command {
	var full bool
	cmd := r.subcommand(&cobra.Command{
		Use: "promote", Short: "End the pause of the present step",
		Example: "  # the next step\n  kubectl refit rollout promote deployment/web\n\n  # no further pause in this update\n  kubectl refit rollout promote deployment/web --full",
	}, nil, kinds{workload: func(ctx context.Context, config policy.Config, target policy.Target) error {
		return policy.Promote(ctx, config, target, full)
	}})
	cmd.Flags().BoolVar(&full, "full", false, "end the pauses of all steps of this update")
	return cmd
}

func (r rollouts) abort() *cobra.Command {
	return r.subcommand(&cobra.Command{
		Use: "abort", Short: "End a restart", Long: rolloutAbortLong, Example: "  kubectl refit rollout abort restartrollout/web-x7k2p",
	}, nil, kinds{restart: rolloutcli.Abort})
}

func (r rollouts) undo() *cobra.Command {
	undo := policy.UndoConfig{SetConfig: policy.SetConfig{Wait: true}}
	var timeout time.Duration
	cmd := r.subcommand(&cobra.Command{
		Use: "undo", Short: "Write an earlier revision", Long: rolloutUndoLong,
		Example: "  kubectl refit rollout undo deployment/web\n  kubectl refit rollout undo deployment/web --to-revision=3 --dry-run\n  kubectl refit rollout undo sidecarset/mesh",
	}, &timeout, kinds{
		workload: func(ctx context.Context, config policy.Config, target policy.Target) error {
			undo.Config = config
			return policy.Undo(ctx, undo, target)
		},
		sidecarSet: func(ctx context.Context, config sidecarsetcli.Config, _ *console.Output, out io.Writer, name string) error {
			if undo.DryRun {
				return fmt.Errorf("%w: --dry-run has no meaning for a SidecarSet; kubectl refit rollout history sidecarset/%s shows the revisions", console.ErrUsage, name)
			}
			return config.Undo(ctx, out, name, undo.Revision)
		},
	})
	cmd.Flags().Int64Var(&undo.Revision, "to-revision", 0, "`number` of the revision, see history; 0 is the last one with another template")
	cmd.Flags().BoolVar(&undo.Wait, "wait", true, "follow the update of a workload to its end, or to a pause that somebody has to end")
	cmd.Flags().BoolVar(&undo.AllowReplacement, "allow-replacement", false, "write the template although the pods have to be replaced for that")
	usage.DryRunFlag(cmd.Flags(), &undo.DryRun, "say of each pod what would happen, and do nothing")
	timeoutFlag(cmd, &timeout)
	return cmd
}

func (r rollouts) history() *cobra.Command {
	var revision int64
	var options table.Options
	var cmd *cobra.Command
	cmd = r.subcommand(&cobra.Command{
		Use: "history", Short: "List the revisions",
		Example: "  kubectl refit rollout history deployment/web\n  kubectl refit rollout history deployment/web --revision=2",
	}, nil, kinds{
		workload: func(ctx context.Context, config policy.Config, target policy.Target) error {
			return policy.History(ctx, policy.HistoryConfig{Config: config, Revision: revision, Table: options}, cmd.OutOrStdout(), target)
		},
		sidecarSet: func(ctx context.Context, config sidecarsetcli.Config, _ *console.Output, out io.Writer, name string) error {
			return config.History(ctx, options, out, name, revision)
		},
	})
	cmd.Flags().Int64Var(&revision, "revision", 0, "print the template of the revision with this `number`")
	noHeadersFlag(cmd, &options)
	return cmd
}
