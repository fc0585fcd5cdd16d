package main

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	probecli "github.com/refit-project/refit/probe/cli"
)

const probeLong = `List the probes of PodProbeMarkers, of a pod, a namespace or all namespaces, with their results. Users who may not read
NodePodProbes, which belong to no namespace, see the results that are conditions of pods; others are shown as "?".
A probe whose container or port a pod does not have is Unknown, and its message says so (--output=wide).

With --output=name, json and the like, the objects are printed from which the rows were read: NodePodProbes and pods, each once.

Exit codes: 0 done, 1 failed, 2 refused or wrong usage.`

func probeCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	config := probecli.Config{Now: time.Now}
	var everywhere bool
	list := &cobra.Command{
		ValidArgsFunction: completing(connection, first(pods)),
		Use:               "ls [POD | pod/POD]", Aliases: []string{"list"}, Short: "List the probes of PodProbeMarkers with their results", Long: probeLong, Args: usage.Arguments(cobra.MaximumNArgs(1)),
		Example: "  kubectl refit probe ls\n  kubectl refit probe ls web-0 -o wide\n  kubectl refit probe ls -A",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := checkFormat(config.Format)
			if err == nil && len(args) > 0 {
				config.Pod, err = podName(args[0])
			}
			if err != nil {
				return err
			}
			if config.API, config.Namespace, err = watcher(connection); err != nil {
				return err
			}
			if everywhere {
				config.Namespace = ""
			}
			return probecli.List(cmd.Context(), config, cmd.OutOrStdout())
		},
	}
	formatFlag(list, &config.Options)
	list.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	cmd := &cobra.Command{
		Use: "probe", Aliases: []string{"probes"}, Short: "Look at the probes of PodProbeMarkers", Long: probeLong,
		Args: usage.UnknownSubcommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(list)
	return cmd
}
