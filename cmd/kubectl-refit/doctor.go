package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/cli/bundle"
	"github.com/refit-project/refit/cli/moving"
	"github.com/refit-project/refit/cli/openkruise"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/doctor"
)

const doctorLong = `Check the installation of Refit: CRDs, refit-manager and its leader, a refit-daemon on every node, versions, whether the webhook answers,
objects of features that are turned off, certificates, admission policies, what holds the workloads of InPlaceUpdatePolicies, and
OpenKruise beside it. Nothing is changed: a request is created with dryRun.

Each check is ok, a warning, failed, or skipped, for example if you lack a permission that it needs.

With --openkruise it reports instead what on the cluster behaves differently when OpenKruise's programs are replaced by Refit's
(to-refit), or the other way round (from-refit), before anything is changed: kinds, fields, feature gates, webhooks, and what is
under way. Each line has the object, what differs and what to do. Of objects that have the same difference the first are named.

With --bundle it writes an archive for a report of a problem: its findings, Refit's objects of all namespaces, nodes, Events, and the pods and
logs of the system namespace. Secrets and ConfigMaps are not read, and values of environment variables are removed; look through it
nevertheless before you pass it on. What you may not read is left out, and named in its file errors.txt.

Exit codes: 0 no check has failed, or nothing differs, or the archive is written; 1 one has, or something does; 2 wrong usage; 130 interrupted.`

func doctorCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var config doctor.Config
	var direction, archive string
	cmd := &cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,
		Use:               "doctor", Short: "Check the installation of Refit", Long: doctorLong, Args: usage.Arguments(cobra.NoArgs),
		Example: "  kubectl refit doctor\n  kubectl refit doctor -o json\n  kubectl refit doctor --openkruise=to-refit\n  kubectl refit doctor --bundle=refit.tar.gz",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"", "json", "yaml"}, config.Format) {
				return fmt.Errorf("%w: --output=%s: want json or yaml", console.ErrUsage, config.Format)
			}
			directions, err := openkruise.Directions(direction)
			if err != nil {
				return fmt.Errorf("%w: --openkruise: %w", console.ErrUsage, err)
			}
			rest, namespace, err := connect(connection)
			if err != nil {
				return err
			}
			kinds := runtime.NewScheme()
			if err := errors.Join(doctor.AddToScheme(kinds), moving.AddToScheme(kinds)); err != nil {
				return err
			}
			if config.API, err = client.New(rest, client.Options{Scheme: kinds}); err != nil {
				return err
			}
			config.Namespace, config.Now = namespace, time.Now()
			if version != "dev" {
				config.Version = version
			}
			if archive != "" {
				return writeBundle(cmd, connection, config, archive)
			}
			return examine(cmd.Context(), &config, directions, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.System, "system-namespace", "refit-system", "`namespace` of refit-manager and refit-daemon")
	flags.StringVarP(&config.Format, "output", "o", "", "json or yaml, instead of text")
	flags.StringVar(&direction, "openkruise", "", "report what differs after a change from or to OpenKruise: `direction` is to-refit, from-refit or both")
	flags.Lookup("openkruise").NoOptDefVal = openkruise.Both
	flags.StringVar(&archive, "bundle", "", "write an archive (tar, gzip) for a report of a problem to this `file`, which must not exist; - is standard output")
	cmd.MarkFlagsMutuallyExclusive("bundle", "openkruise")
	completeNamespaces(cmd, connection, "system-namespace")
	completeFormats(cmd, []string{"json", "yaml"})
	mustRegister(cmd, "openkruise", cobra.FixedCompletions([]string{string(openkruise.ToRefit), string(openkruise.FromRefit), openkruise.Both}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// writeBundle writes an archive for a report of a problem.
func writeBundle(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, config doctor.Config, name string) error {
	out := cmd.OutOrStdout()
	if name == stdout && terminal(out) {
		return fmt.Errorf("%w: --bundle=-: standard output is a terminal, and the archive is no text", console.ErrUsage)
	}
	pods, err := logReader(connection)
	if err != nil {
		return err
	}
	from := bundle.Config{
		API: config.API, System: config.System, Now: config.Now,
		Doctor: func(out io.Writer) {
			if err := doctor.Run(cmd.Context(), config, out); err != nil {
				fmt.Fprintln(out, err)
			}
		},
		Logs: openLog(pods),
	}
	if name == stdout {
		return console.Ended(cmd.Context(), bundle.Write(cmd.Context(), from, out))
	}
	const mode = 0o600 // it may have more than its owner may show to others
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("%w: --bundle: %w", console.ErrUsage, err)
	}
	err = console.Ended(cmd.Context(), bundle.Write(cmd.Context(), from, file))
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(name)) // a part of an archive is of no use
	}
	_, err = fmt.Fprintf(out, "%s is written; look through it before you pass it on\n", name)
	return err
}

// examine checks the installation, or reports the differences in directions.
func examine(ctx context.Context, config *doctor.Config, directions []openkruise.Direction, out io.Writer) error {
	if len(directions) == 0 {
		return doctor.Run(ctx, *config, out)
	}
	return moving.Run(ctx, moving.Config{API: config.API, System: config.System, Directions: directions, Format: config.Format, Now: config.Now}, out)
}
