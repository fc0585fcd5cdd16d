package main

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
)

const scheduleLong = `Look at RestartSchedules, suspend and resume them, and begin a restart of one at once.

  ls       when they ran last, and when they run next
  trigger  create a RestartRollout from the template of a schedule now; the schedule does not count it
  suspend  create no further rollouts; the ones that exist continue
  resume   continue after suspend

Exit codes: 0 done, 1 failed, 2 refused (nothing has been changed) or wrong usage, 124 not done within --timeout, 130 interrupted.`

func scheduleCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "schedule", Aliases: []string{"schedules"}, Short: "Look at RestartSchedules, trigger and suspend them", Long: scheduleLong, Args: usage.UnknownSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(scheduleList(connection), scheduleTrigger(connection), scheduleSuspend(connection, true), scheduleSuspend(connection, false))
	return cmd
}

func scheduleList(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var options table.Options
	var everywhere bool
	cmd := &cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,
		Use:               "ls", Aliases: []string{"list"}, Short: "List RestartSchedules with their last and next run", Long: scheduleLong, Args: usage.Arguments(cobra.NoArgs),
		Example: "  kubectl refit schedule ls\n  kubectl refit schedule ls -A -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(options.Format); err != nil {
				return err
			}
			var config rolloutcli.Config
			var err error
			if config.API, config.Namespace, err = watcher(connection); err != nil {
				return err
			}
			if everywhere {
				config.Namespace = ""
			}
			return rolloutcli.Schedules(cmd.Context(), config, options, time.Now(), cmd.OutOrStdout())
		},
	}
	formatFlag(cmd, &options)
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func scheduleTrigger(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var config rolloutcli.Config
	var format string
	cmd := &cobra.Command{
		ValidArgsFunction: completing(connection, scheduleNames),
		Use:               "trigger NAME", Short: "Begin a restart of a schedule at once", Long: scheduleLong, Args: usage.OneArgument(),
		Example: "  kubectl refit schedule trigger nightly",
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if config.Made, config.Output, err = output(cmd, format); err != nil {
				return err
			}
			if config.API, config.Namespace, err = watcher(connection); err != nil {
				return err
			}
			return rolloutcli.Trigger(cmd.Context(), config, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.Reason, "reason", "", "why, in one line; it is shown in Events")
	flags.BoolVar(&config.Wait, "wait", true, "follow the restart to its end")
	usage.TimeoutFlag(flags, &config.Timeout, "the restart continues")
	usage.DryRunFlag(flags, &config.DryRun, "only check whether the restart is admitted")
	madeFlag(cmd, &format)
	return cmd
}

func scheduleSuspend(connection *genericclioptions.ConfigFlags, suspended bool) *cobra.Command {
	cmd := &cobra.Command{Use: "resume NAME", Short: "Continue after suspend", Example: "  kubectl refit schedule resume nightly"}
	if suspended {
		cmd = &cobra.Command{Use: "suspend NAME", Short: "Create no further rollouts", Example: "  kubectl refit schedule suspend nightly"}
	}
	cmd.ValidArgsFunction, cmd.Long, cmd.Args = completing(connection, scheduleNames), scheduleLong, usage.OneArgument()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		config := rolloutcli.Config{Output: console.NewOutput(cmd.OutOrStdout(), terminal(cmd.OutOrStdout()))}
		var err error
		if config.API, config.Namespace, err = watcher(connection); err != nil {
			return err
		}
		return rolloutcli.Suspend(cmd.Context(), config, args[0], suspended)
	}
	return cmd
}
