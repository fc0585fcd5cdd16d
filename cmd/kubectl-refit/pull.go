package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/image/cli/pullnodes"
	"github.com/refit-project/refit/internal/console"
)

const pullLong = `Pull an image onto nodes before it is needed, by an ImagePullJob: all nodes, or those that --nodes selects by their labels.
Ctrl-C leaves the job as it is, and says how to follow or stop it.

Exit codes: 0 done, 1 failed on a node, 2 refused (nothing has been done) or wrong usage, 124 not done within --timeout, 130 interrupted.`

func pullCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var config pullnodes.Config
	var nodes, format string
	cmd := &cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,
		Use:               "pull IMAGE [--nodes SELECTOR]", Short: "Pull an image onto nodes before it is needed", Long: pullLong, Args: usage.OneArgument(),
		Example: "  kubectl refit pull registry.example.com/shop:7\n  kubectl refit pull registry.example.com/model:3 --nodes pool=gpu --parallelism=4 --secret=registry",
		RunE: func(cmd *cobra.Command, args []string) error {
			config.Image = args[0]
			if config.Parallelism < 1 {
				return fmt.Errorf("%w: --parallelism=%d: want at least 1", console.ErrUsage, config.Parallelism)
			}
			if nodes != "" {
				selector, err := console.ParseSelector(nodes)
				if err != nil {
					return fmt.Errorf("%w: --nodes: %w", console.ErrUsage, err)
				}
				config.Nodes = selector
			}
			var err error
			if config.Made, config.Output, err = output(cmd, format); err != nil {
				return err
			}
			if config.API, config.Namespace, err = watcher(connection); err != nil {
				return err
			}
			return pullnodes.Run(cmd.Context(), config)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&nodes, "nodes", "", "`label selector` of the nodes (default: all)")
	flags.Int32Var(&config.Parallelism, "parallelism", 1, "`nodes` that pull at a time")
	flags.StringArrayVar(&config.Secrets, "secret", nil, "pull `secret` of the namespace; repeated for more")
	flags.BoolVar(&config.Always, "always", false, "ask the registry also where a node has the image: its tag may have moved")
	flags.BoolVar(&config.Wait, "wait", true, "follow the pull to its end")
	madeFlag(cmd, &format)
	mustRegister(cmd, "secret", completing(connection, secrets))
	usage.TimeoutFlag(flags, &config.Timeout, "the pull continues")
	return cmd
}
