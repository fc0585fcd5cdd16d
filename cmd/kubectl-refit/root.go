package main

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
)

const rootLong = `Change, restart and explain running pods in place: they keep UID, IP, node, volumes and their other containers.

Exit codes: 0 done, 1 failed, 2 refused (nothing has been changed) or wrong usage, 124 not done within --timeout, 130 interrupted.`

const rootExample = `  # restart a container of every pod of a Deployment, a quarter at a time
  kubectl refit restart deployment/web -c app --max-unavailable=25%

  # a new image, without new pods
  kubectl refit set image deployment/web app=nginx:1.29

  # why has it restarted, and what is under way
  kubectl refit why web-5d9c7b8f4-x2x7p
  kubectl refit status

  # is Refit installed, and does it work
  kubectl refit doctor`

// Groups of commands in the help.
var (
	groupChange = &cobra.Group{ID: "change", Title: "Change and restart pods:"}
	groupLook   = &cobra.Group{ID: "look", Title: "Look at pods and what happens to them:"}
	groupOther  = &cobra.Group{ID: "other", Title: "Other commands:"}
)

func command(version string) *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-refit", Short: "Change, restart and explain running pods in place", Long: rootLong, Example: rootExample,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl refit"},
		Version:     version, SilenceUsage: true, SilenceErrors: true, Args: usage.UnknownSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := genericclioptions.NewConfigFlags(true)
	flags.AddFlags(root.PersistentFlags())
	root.AddGroup(groupChange, groupLook, groupOther)
	addTo(root, groupChange, restartCommand(flags), setCommand(flags), rolloutCommand(flags), sidecarSetCommand(flags), scheduleCommand(flags), pullCommand(flags), filesCommand(flags))
	addTo(root, groupLook, statusCommand(flags), watchCommand(flags), whyCommand(flags), logsCommand(flags), timelineCommand(flags), dashboardCommand(flags), probeCommand(flags))
	addTo(root, groupOther, doctorCommand(flags), usage.Options(root), usage.Version(root))
	root.SetHelpCommandGroupID(groupOther.ID)
	root.SetCompletionCommandGroupID(groupOther.ID)
	completeConnection(root, flags)
	root.SetFlagErrorFunc(usage.WrongFlag)
	return root
}

func addTo(root *cobra.Command, group *cobra.Group, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = group.ID
	}
	root.AddCommand(commands...)
}
