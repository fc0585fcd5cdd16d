package main

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
)

const statusLong = `Show what Refit does in a namespace, or in all: ContainerRecreateRequests, RestartRollouts, updates by InPlaceUpdatePolicies and
ImagePullJobs that are in progress or ended in the last hour; who asked for them, how far they are, and with --output=wide why. The requests of a RestartRollout are below it.

Below that are RestartSchedules, with their next and last run, and RestartTriggers: workloads that are restarted when a ConfigMap or
Secret has changed. RestartTriggers are left out for users who may not read them.

Exit codes: 0 done, 1 failed, 2 refused or wrong usage.`

const watchLong = `Print a line whenever a ContainerRecreateRequest, a RestartRollout, an InPlaceUpdatePolicy or an ImagePullJob has changed, until Ctrl-C.

Exit codes: 0 ended by Ctrl-C, 1 failed, 2 refused or wrong usage.`

func statusCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	config := status.Config{Now: time.Now}
	var all, everywhere bool
	cmd := &cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,
		Use:               "status", Short: "Show requests, restarts of workloads, image pulls and schedules", Long: statusLong, Args: usage.Arguments(cobra.NoArgs),
		Example: "  kubectl refit status\n  kubectl refit status -A -o wide\n  kubectl refit status --all -o name",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(config.Format); err != nil {
				return err
			}
			if !all {
				config.Since = time.Hour
			}
			return statusOf(connection, &config, everywhere, func() error { return status.Run(cmd.Context(), config, cmd.OutOrStdout()) })
		},
	}
	formatFlag(cmd, &config.Options)
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	cmd.Flags().BoolVar(&all, "all", false, "also what ended more than an hour ago")
	return cmd
}

func watchCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	config := status.Config{Now: time.Now}
	var everywhere bool
	cmd := &cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,
		Use:               "watch", Short: "Tell what requests, restarts of workloads and image pulls do", Long: watchLong, Args: usage.Arguments(cobra.NoArgs),
		Example: "  kubectl refit watch\n  kubectl refit watch -A",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return statusOf(connection, &config, everywhere, func() error { return status.Watch(cmd.Context(), config, cmd.OutOrStdout()) })
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func statusOf(connection *genericclioptions.ConfigFlags, config *status.Config, everywhere bool, run func() error) (err error) {
	if config.API, config.Namespace, err = watcher(connection); err != nil {
		return err
	}
	if everywhere {
		config.Namespace = ""
	}
	return run()
}

// formatFlag adds the flags of a command that prints a table of objects.
func formatFlag(cmd *cobra.Command, options *table.Options) {
	cmd.Flags().StringVarP(&options.Format, "output", "o", "", "wide, "+formatsOfObjects)
	noHeadersFlag(cmd, options)
	completeFormats(cmd, append([]string{"wide"}, table.Formats...))
}

// noHeadersFlag adds the flag of kubectl get for scripts.
func noHeadersFlag(cmd *cobra.Command, options *table.Options) {
	cmd.Flags().BoolVar(&options.NoHeaders, "no-headers", false, "print only the rows of a table, without the names of its columns")
}

// formatsOfObjects are the formats of kubectl get, without those that have two names.
const formatsOfObjects = "name, json, yaml, jsonpath=TEMPLATE, go-template=TEMPLATE or custom-columns=NAME:JSONPATH,..."

// madeFlag adds --output to a command that creates an object: the object is printed, and progress goes to standard error.
func madeFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "",
		"print the object that is made, and progress to standard error, the name at once, other formats at the end: "+formatsOfObjects)
	completeFormats(cmd, table.Formats)
}

// output returns the printer of the created object, if it is printed, and the output for progress.
func output(cmd *cobra.Command, format string) (made table.Made, progress *console.Output, err error) {
	if format == "" {
		return table.Made{}, console.NewOutput(cmd.OutOrStdout(), terminal(cmd.OutOrStdout())), nil
	}
	return table.Made{Out: cmd.OutOrStdout(), Format: format}, console.NewOutput(cmd.ErrOrStderr(), terminal(cmd.ErrOrStderr())), table.CheckFormat(format, false)
}

func checkFormat(format string) error { return table.CheckFormat(format, true) }
