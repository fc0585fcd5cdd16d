package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/cli"
	"github.com/refit-project/refit/cli/doctor"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
)

const doctorLong = `Check the installation of Refit: CRDs, refit-manager, a refit-daemon on every node, versions, whether the webhook answers,
certificates, admission policies, and OpenKruise beside it. Nothing is changed: a request is created with dryRun.

Each check is ok, a warning, failed, or skipped, as when you may not read what it needs.

Exit codes: 0 no check has failed, 1 one has, 2 wrong usage.`

func doctorCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var config doctor.Config
	cmd := &cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,
		Use:               "doctor", Short: "Check the installation of Refit", Long: doctorLong, Args: usage.Arguments(cobra.NoArgs),
		Example: "  kubectl refit doctor\n  kubectl refit doctor -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"", "json", "yaml"}, config.Format) {
				return fmt.Errorf("%w: --output=%s: want json or yaml", cli.ErrUsage, config.Format)
			}
			rest, namespace, err := connect(connection)
			if err != nil {
				return err
			}
			kinds := runtime.NewScheme()
			if err := doctor.AddToScheme(kinds); err != nil {
				return err
			}
			if config.API, err = client.New(rest, client.Options{Scheme: kinds}); err != nil {
				return err
			}
			config.Namespace, config.Now = namespace, time.Now()
			if version != "dev" {
				config.Version = version
			}
			return doctor.Run(cmd.Context(), config, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.System, "system-namespace", "refit-system", "`namespace` of refit-manager and refit-daemon")
	flags.StringVarP(&config.Format, "output", "o", "", "json or yaml, instead of text")
	completeNamespaces(cmd, connection, "system-namespace")
	completeFormats(cmd, []string{"json", "yaml"})
	return cmd
}
