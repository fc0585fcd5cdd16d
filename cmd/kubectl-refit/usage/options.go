package usage

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Options returns a command that prints the persistent flags of the root command, which it removes from the help of all commands, as
// kubectl options does.
func Options(root *cobra.Command) *cobra.Command {
	var shared []*pflag.Flag
	root.PersistentFlags().VisitAll(func(flag *pflag.Flag) { shared = append(shared, flag) })
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		for _, flag := range shared {
			flag.Hidden = true
		}
		help(cmd, args)
		for _, flag := range shared {
			flag.Hidden = false
		}
	})
	path := root.DisplayName() + " options"
	root.SetUsageTemplate(strings.TrimRight(root.UsageTemplate(), "\n") + "\n\nUse \"" + path + "\" for the flags of all commands, such as --namespace and --context.\n")
	return &cobra.Command{
		Use: "options", Short: "List the flags that all commands have", Args: Arguments(cobra.NoArgs), ValidArgsFunction: cobra.NoFileCompletions,
		Long: "List the flags that all commands have. They choose the cluster and the user, as for kubectl.\n\nExit codes: 0 done, 2 wrong usage.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), "The following flags can be passed to any command:\n\n", root.PersistentFlags().FlagUsages())
			return err
		},
	}
}
