package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cli/completion"
	"github.com/refit-project/refit/cli/timeline"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
)

const timelineLong = `Show when the parts of a restart happened, for a ContainerRecreateRequest or for the requests of a RestartRollout; or of an update in place,
for the pods that an InPlaceUpdatePolicy has updated to the present template. Each time is shown with its source: annotations and conditions of the request, the pod's status, or Events, which the cluster keeps for an hour. A time
that is not recorded anywhere is shown as not known, with the reason. What has not happened yet is shown as not yet, with what comes
before it.

Exit codes: 0 done, 1 failed, 2 refused or wrong usage.`

func timelineCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var config timeline.Config
	cmd := &cobra.Command{
		Use: "timeline (crr/NAME | restartrollout/NAME | inplaceupdatepolicy/NAME)", Short: "Show when the parts of a restart or an update happened", Long: timelineLong, Args: usage.OneObject(),
		Example: "  kubectl refit timeline crr/web-0-x7k2p\n  kubectl refit timeline crr/web-0-x7k2p -o svg > restart.svg\n  kubectl refit timeline inplaceupdatepolicy/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := timeline.ParseTarget(usage.Object(args))
			if err != nil {
				return err
			}
			if !slices.Contains(timeline.Formats, config.Format) {
				return fmt.Errorf("%w: --output=%s: want svg, json or yaml", console.ErrUsage, config.Format)
			}
			if config.API, config.Namespace, err = watcher(connection); err != nil {
				return err
			}
			return timeline.Run(cmd.Context(), config, cmd.OutOrStdout(), target)
		},
	}
	cmd.Flags().StringVarP(&config.Format, "output", "o", "", "svg, json or yaml, instead of text")
	completeFormats(cmd, timeline.Formats[1:])
	cmd.ValidArgsFunction = completing(connection, objects(completion.Requests...))
	return cmd
}
