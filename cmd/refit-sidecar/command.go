package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/refit-project/refit/internal/logging"
	"github.com/refit-project/refit/sidecarmode"
)

const long = `refit-sidecar runs in a pod, for nodes without a daemon: it updates files under a running program and tells it,
probes and writes the results where they are wanted, and carries out ContainerRecreateRequests of its own pod.

What it does is in its configuration file, which is read again when it changes. The environment variables POD_NAME,
POD_NAMESPACE and POD_UID say where it is; take them from fieldRef metadata.name, metadata.namespace and metadata.uid.`

func newCommand(version string) *cobra.Command {
	config := sidecarmode.Config{
		Version: version, Namespace: os.Getenv("POD_NAMESPACE"), Pod: os.Getenv("POD_NAME"), UID: os.Getenv("POD_UID"),
		Container: cmp.Or(os.Getenv("CONTAINER_NAME"), "refit-sidecar"),
	}
	var log logging.Options
	command := &cobra.Command{
		Use: "refit-sidecar", Short: "Updates, probes and repairs its own pod in place", Long: long, Version: version,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		Example: `  POD_NAME=web-0 POD_NAMESPACE=default refit-sidecar --config config.yaml`,
		RunE: func(command *cobra.Command, _ []string) error {
			logger, err := log.New(command.ErrOrStderr())
			if err != nil {
				return err
			}
			libraries, err := log.Libraries(command.ErrOrStderr())
			if err != nil {
				return err
			}
			klog.SetSlogLogger(libraries)
			config.Logger = logger
			return sidecarmode.Run(command.Context(), config)
		},
	}
	command.CompletionOptions.DisableDefaultCmd = true
	flags := command.Flags()
	flags.StringVar(&config.File, "config", "", "configuration file; empty: the first of "+fmt.Sprint(sidecarmode.DefaultConfigFiles())+" that exists")
	flags.DurationVar(&config.Grace, "grace", 25*time.Second, "how long an end may take; less than the pod's terminationGracePeriodSeconds")
	log.AddFlags(flags)
	command.AddCommand(validate(), schema())
	return command
}

// validate checks a file without a pod.
func validate() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE", Short: "Check a configuration file, or a ConfigMap manifest with one in it", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			if err := sidecarmode.Check(args[0], text, nil); err != nil {
				return fmt.Errorf("not valid:\n%w", err)
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), args[0]+": valid")
			return err
		},
	}
}

func schema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration file", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			s, err := sidecarmode.Schema(nil)
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(command.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(s)
		},
	}
}
