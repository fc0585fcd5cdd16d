package main

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/refit-project/refit/internal/doctor"
)

const doctorLong = `doctor makes the checks of "kubectl refit doctor" from inside the cluster, with the service account of its pod. It is what
"helm test" runs. The exit code is 1 if a check has failed.`

func doctorCommand() *cobra.Command {
	var checks doctor.Config
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the installation, once", Long: doctorLong, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			connection, err := config.GetConfig()
			if err != nil {
				return err
			}
			kinds := runtime.NewScheme()
			if err := doctor.AddToScheme(kinds); err != nil {
				return err
			}
			if checks.API, err = client.New(connection, client.Options{Scheme: kinds}); err != nil {
				return err
			}
			checks.Namespace, checks.Now = checks.System, time.Now()
			return doctor.Run(cmd.Context(), checks, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&checks.System, "namespace", defaultNamespace(), "namespace of refit-manager and refit-daemon; default from env POD_NAMESPACE")
	return cmd
}
