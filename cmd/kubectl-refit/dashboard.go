package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cli/dashboard"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
)

const dashboardLong = `Serve pages about what Refit does: rollouts, requests and image pulls as they change; one rollout with a row for each pod, to pause, resume,
abort and undo it; one pod, with why its containers were restarted, when, and their logs; nodes; SidecarSets with their revisions.

The pages are served on 127.0.0.1, and need the token in the address that is printed. They read and change the cluster with your rights.
--read-only refuses actions. --record writes a RestartRollout or the update of an InPlaceUpdatePolicy, as it is now, into one file of HTML,
and ends.

Exit codes: 0 ended by Ctrl-C or recorded, 1 failed, 2 refused or wrong usage.`

func dashboardCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	config := dashboard.Config{Now: time.Now}
	var everywhere bool
	var record string
	cmd := &cobra.Command{
		Use: "dashboard [KIND/NAME]", Short: "Serve pages about rollouts, pods, nodes and SidecarSets", Long: dashboardLong, Args: usage.Arguments(cobra.MaximumNArgs(1)),
		Example: "  kubectl refit dashboard\n  kubectl refit dashboard -A --read-only\n  kubectl refit dashboard --record=rollout.html restartrollout/web-x7k2p",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (record == "") != (len(args) == 0) {
				return fmt.Errorf("%w: --record needs a rollout, as restartrollout/NAME, and only --record does", console.ErrUsage)
			}
			if config.Port < 0 || config.Port > 65535 {
				return fmt.Errorf("%w: --port: want a number from 0 to 65535", console.ErrUsage)
			}
			pods, err := logReader(connection)
			if err != nil {
				return err
			}
			if config.API, config.Namespace, err = watcher(connection); err != nil {
				return err
			}
			config.Logs, config.Previous = openLog(pods), previousLogs(pods)
			if record != "" {
				return recordRollout(cmd.Context(), config, cmd.OutOrStdout(), record, args[0])
			}
			if everywhere {
				config.Namespace = ""
			}
			return dashboard.Run(cmd.Context(), config, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	flags.BoolVar(&config.ReadOnly, "read-only", false, "refuse actions")
	flags.IntVar(&config.Port, "port", 0, "`port` of 127.0.0.1; 0 is any that is free")
	flags.StringVar(&record, "record", "", "write a rollout into this `file`, which must not exist, instead of serving pages; - is standard output")
	flags.StringVar(&config.System, "system-namespace", "refit-system", "`namespace` of refit-manager and refit-daemon")
	for _, served := range []string{"all-namespaces", "port", "read-only"} {
		cmd.MarkFlagsMutuallyExclusive("record", served)
	}
	completeNamespaces(cmd, connection, "system-namespace")
	cmd.ValidArgsFunction = completing(connection, objects("restartrollout", "inplaceupdatepolicy"))
	return cmd
}

// stdout is the name of a file that stands for standard output.
const stdout = "-"

// recordRollout writes a rollout into a new file, or to standard output.
func recordRollout(ctx context.Context, config dashboard.Config, out io.Writer, name, rollout string) error {
	var page bytes.Buffer
	if err := dashboard.Record(ctx, config, &page, rollout); err != nil {
		return err
	}
	if name == stdout {
		if _, err := page.WriteTo(out); err != nil {
			return fmt.Errorf("write the page: %w", err)
		}
		return nil
	}
	const mode = 0o600 // it may have more than its owner may show to others
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("%w: --record: %w", console.ErrUsage, err)
	}
	_, err = file.Write(page.Bytes())
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = fmt.Fprintf(out, "%s is written\n", name)
	return err
}
