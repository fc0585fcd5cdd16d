package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/completion"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
	sidecarsetcli "github.com/refit-project/refit/sidecarset/cli"
)

const sidecarSetLong = `Look at SidecarSets and their rollouts, and hold them up or take them back.

  status   pods that are selected, updated, ready, being updated and failed; what the rollout waits for
  pause    start no further update; pods whose update has been begun are finished
  resume   go on
  undo     take containers, volumes, metadata and customVersion back to the previous revision, or to --to-revision
  history  the revisions, with their images
  render   what would be injected into a pod, or the next pod of a workload, and why or why not

Exit codes: 0 done, 1 failed (render: the pod would be refused), 2 refused or wrong usage.`

func sidecarSetCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	config := &sidecarsetcli.Config{Now: time.Now}
	cmd := &cobra.Command{
		Use: "sidecarset", Aliases: []string{"sidecarsets"}, Short: "Look at SidecarSets, pause, resume and undo their rollouts", Long: sidecarSetLong,
		Args: usage.UnknownSubcommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	s := sidecarSets{connection: connection, config: config}
	s.systemFlag(cmd)
	cmd.AddCommand(s.status(), s.pause("pause", "Start no further update of pods", true), s.pause("resume", "Go on with the rollout", false), s.undo(), s.history(), s.render())
	return cmd
}

type sidecarSets struct {
	connection *genericclioptions.ConfigFlags
	config     *sidecarsetcli.Config
}

// systemFlag adds the flag for the namespace of the revisions.
func (s sidecarSets) systemFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&s.config.System, "system-namespace", "refit-system", "`namespace` of refit-manager, which has the revisions of SidecarSets")
	completeNamespaces(cmd, s.connection, "system-namespace")
}

// open connects, and returns the user's namespace.
func (s sidecarSets) open() (string, error) {
	rest, namespace, err := connect(s.connection)
	if err != nil {
		return "", err
	}
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(kinds); err != nil {
			return "", err
		}
	}
	s.config.API, err = client.New(rest, client.Options{Scheme: kinds})
	return namespace, err
}

func (s sidecarSets) status() *cobra.Command {
	var options table.Options
	cmd := &cobra.Command{
		ValidArgsFunction: completing(s.connection, sidecarSetNames(true)),
		Use:               "status [NAME]...", Short: "Show how far the rollouts of SidecarSets are", Long: sidecarSetLong,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(options.Format); err != nil {
				return err
			}
			if _, err := s.open(); err != nil {
				return err
			}
			return s.config.Status(cmd.Context(), options, cmd.OutOrStdout(), args...)
		},
	}
	formatFlag(cmd, &options)
	return cmd
}

func (s sidecarSets) pause(verb, short string, paused bool) *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: completing(s.connection, sidecarSetNames(false)),
		Use:               verb + " NAME", Short: short, Long: sidecarSetLong, Args: usage.OneArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := s.open(); err != nil {
				return err
			}
			return s.config.Pause(cmd.Context(), cmd.OutOrStdout(), args[0], paused)
		},
	}
}

func (s sidecarSets) undo() *cobra.Command {
	var to int64
	cmd := &cobra.Command{
		ValidArgsFunction: completing(s.connection, sidecarSetNames(false)),
		Use:               "undo NAME", Short: "Take a SidecarSet back to an earlier revision", Long: sidecarSetLong, Args: usage.OneArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to < 0 {
				return fmt.Errorf("%w: --to-revision=%d: want the number of a revision", console.ErrUsage, to)
			}
			if _, err := s.open(); err != nil {
				return err
			}
			return s.config.Undo(cmd.Context(), cmd.OutOrStdout(), args[0], to)
		},
	}
	cmd.Flags().Int64Var(&to, "to-revision", 0, "`number` of the revision (default: the one before)")
	return cmd
}

func (s sidecarSets) history() *cobra.Command {
	var number int64
	var options table.Options
	cmd := &cobra.Command{
		ValidArgsFunction: completing(s.connection, sidecarSetNames(false)),
		Use:               "history NAME", Short: "List the revisions of a SidecarSet", Long: sidecarSetLong, Args: usage.OneArgument(),
		Example: "  kubectl refit sidecarset history mesh\n  kubectl refit sidecarset history mesh --revision=2",
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := s.open(); err != nil {
				return err
			}
			return s.config.History(cmd.Context(), options, cmd.OutOrStdout(), args[0], number)
		},
	}
	cmd.Flags().Int64Var(&number, "revision", 0, "print what the revision with this `number` has")
	noHeadersFlag(cmd, &options)
	return cmd
}

func (s sidecarSets) render() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		ValidArgsFunction: completing(s.connection, objects(completion.Workloads...)),
		Use:               "render (KIND/NAME | -f FILE...)", Short: "Show what SidecarSets would inject into a pod, and why or why not", Long: sidecarSetLong, Args: usage.Arguments(cobra.MaximumNArgs(1)),
		Example: "  # the next pod of a Deployment, with the SidecarSets of the cluster\n  kubectl refit sidecarset render deployment/web\n\n" +
			"  # without a cluster\n  kubectl refit sidecarset render -f pod.yaml -f sidecarset.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (len(files) == 0) {
				return fmt.Errorf("%w: name either a pod or workload, as deployment/web, or files with --filename", console.ErrUsage)
			}
			if len(files) > 0 {
				return sidecarsetcli.Render(cmd.OutOrStdout(), cmd.InOrStdin(), files)
			}
			return s.renderFromCluster(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "`file` with a pod, SidecarSets and Namespaces; - is standard input")
	return cmd
}

func (s sidecarSets) renderFromCluster(ctx context.Context, out io.Writer, text string) error {
	target, err := rolloutcli.ParseTarget(text, "")
	if err != nil {
		return err
	}
	kind, name := corev1.SchemeGroupVersion.WithKind("Pod"), target.Pod
	if target.Workload != nil {
		kind, name = schema.FromAPIVersionAndKind(target.Workload.APIVersion, target.Workload.Kind), target.Workload.Name
	}
	namespace, err := s.open()
	if err != nil {
		return err
	}
	return s.config.RenderFromCluster(ctx, out, kind, namespace, name)
}
