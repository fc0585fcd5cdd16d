package usage

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Version returns a command that prints the same as --version.
func Version(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: Arguments(cobra.NoArgs), ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Show the version of this program; `kubectl refit doctor` compares it with the installed version.\n\nExit codes: 0 done, 2 wrong usage.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), root.DisplayName(), "version", root.Version)
			return err
		},
	}
}
