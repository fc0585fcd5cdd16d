package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	filescli "github.com/refit-project/refit/hotupdate/cli"
	"github.com/refit-project/refit/internal/console"
)

const filesUpdateLong = `Put files into place, from this machine or from a URL that the sidecar can read, and wait until the application has them and all
checks have passed. If one fails, the former files are in use again, and the command says why. FILE keeps its own name, NAME=FILE gets another one.

With --selector the files of several pods are changed, --parallelism of them at a time. After a failure no further pod is begun.

Exit codes: 0 done, 1 failed, 2 refused (nothing has been changed) or wrong usage, 124 not done within --timeout, 130 interrupted.`

// filesUpdate is the command that changes files.
type filesUpdate struct {
	sidecar     sidecarFlags
	change      filescli.Change
	from        filescli.File
	selector    string
	parallelism int
}

func filesUpdateCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var u filesUpdate
	cmd := &cobra.Command{
		ValidArgsFunction: podThenFiles(connection),
		Use:               "update (POD | pod/POD | -l SELECTOR) --version=VERSION [[NAME=]FILE ...]", Short: "Put files into place, with the checks of the sidecar", Long: filesUpdateLong,
		Args: usage.Arguments(func(cmd *cobra.Command, args []string) error {
			if u.selector != "" {
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		}),
		Example: "  kubectl refit files update web-0 --version=v2 default.conf\n  kubectl refit files update web-0 --version=v2 conf/site.conf=./site.conf --dry-run\n" +
			"  kubectl refit files update web-0 --version=v2 --url=https://files.example.com/v2/site.tar.gz --sha256=DIGEST\n" +
			"  kubectl refit files update -l app=web --parallelism=2 --version=v2 default.conf",
		RunE: func(cmd *cobra.Command, args []string) error { return u.run(cmd, connection, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&u.selector, "selector", "l", "", "the pods that this `label selector` matches, instead of one pod")
	flags.IntVar(&u.parallelism, "parallelism", 1, "how many `pods` of --selector are changed at a time")
	flags.StringVar(&u.change.Version, "version", "", "`version` of the files, as v2")
	flags.StringVar(&u.from.URL, "url", "", "`URL` of a file or archive that the sidecar reads")
	flags.StringVar(&u.from.Name, "name", "", "`name` of the file of --url (default: the end of the URL)")
	flags.StringVar(&u.from.SHA256, "sha256", "", "`digest` in hex that the content of --url must have")
	flags.BoolVar(&u.change.Keep, "keep", true, "keep other files; false removes them")
	usage.DryRunFlag(flags, &u.change.DryRun, "let the sidecar check the files, and change nothing: server or client, which are the same, or none")
	u.sidecar.add(cmd, connection, "the update continues")
	return cmd
}

func (u *filesUpdate) run(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, args []string) error {
	files := args
	if u.selector == "" {
		files = args[1:]
	}
	var err error
	if u.change.Files, err = filescli.ReadFiles(files); err != nil {
		return err
	}
	if u.from.URL != "" {
		u.change.Files = append(u.change.Files, u.from)
	}
	switch {
	case u.change.Version == "":
		return fmt.Errorf("%w: --version is required: another content needs another version", console.ErrUsage)
	case len(u.change.Files) == 0:
		return fmt.Errorf("%w: want files, or --url", console.ErrUsage)
	case u.from.URL == "" && (u.from.Name != "" || u.from.SHA256 != ""):
		return fmt.Errorf("%w: --name and --sha256 are about --url", console.ErrUsage)
	case u.parallelism < 1:
		return fmt.Errorf("%w: --parallelism=%d: want at least 1", console.ErrUsage, u.parallelism)
	case u.selector == "" && cmd.Flags().Changed("parallelism"):
		return fmt.Errorf("%w: --parallelism has no meaning for one pod", console.ErrUsage)
	case u.selector != "":
		return u.several(cmd, connection)
	}
	config, err := u.sidecar.open(cmd, connection, args[0])
	if err != nil {
		return err
	}
	return filescli.Update(cmd.Context(), config, u.change)
}

// several changes the files of the pods that the selector matches. Pods that have ended, or are about to, are left out.
func (u *filesUpdate) several(cmd *cobra.Command, connection *genericclioptions.ConfigFlags) error {
	if _, err := console.ParseSelector(u.selector); err != nil {
		return fmt.Errorf("%w: --selector: %w", console.ErrUsage, err)
	}
	configs, err := u.sidecar.openAll(cmd, connection, func(ctx context.Context, namespace string, pods corev1client.PodInterface) ([]corev1.Pod, error) {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: u.selector})
		if err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
			return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		})
		slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		if len(list.Items) == 0 {
			return nil, fmt.Errorf("no running pod in namespace %s matches --selector=%s", namespace, u.selector)
		}
		return list.Items, nil
	})
	if err != nil {
		return err
	}
	return filescli.UpdateAll(cmd.Context(), configs, u.change, u.parallelism)
}

// podThenFiles completes the name of a pod, and then files of this machine.
func podThenFiles(connection *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	complete := completing(connection, first(pods))
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || cmd.Flags().Changed("selector") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return complete(cmd, args, typed)
	}
}
