package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	filescli "github.com/refit-project/refit/hotupdate/cli"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kube/podport"
)

const filesLong = `Change files of a running pod through its refit-sidecar (plugin hot_update), without a restart: all of them or none, with the
checks and the signal that the configuration of the sidecar has. The port of the sidecar is reached through the API server, with the
right to create pods/portforward; its token is read from a Secret.

Exit codes: 0 done, 1 failed, 2 refused or wrong usage, 124 not done within --timeout, 130 interrupted.`

const filesRollbackLong = `Return to files that were accepted before: --to is a version or the ID of a revision; without it, to the ones before the present ones.

Exit codes: 0 done, 1 failed, 2 refused (nothing has been changed) or wrong usage, 124 not done within --timeout, 130 interrupted.`

// defaultToken is the Secret in docs/sidecar.md.
const defaultToken = "refit-sidecar-token" //nolint:gosec // the name of a Secret

// sidecarFlags says how the sidecar of a pod is reached.
type sidecarFlags struct {
	config filescli.Config
	secret string
	port   int
}

func (f *sidecarFlags) add(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, after string) {
	flags := cmd.Flags()
	flags.IntVar(&f.port, "port", 5000, "`port` of the sidecar")
	flags.StringVar(&f.secret, "token-secret", defaultToken, "`Secret` of the namespace with the token of the sidecar, as NAME or NAME/KEY; empty: no token")
	usage.TimeoutFlag(flags, &f.config.Timeout, after)
	mustRegister(cmd, "token-secret", completing(connection, secrets))
}

// open connects to the sidecar of a pod.
func (f *sidecarFlags) open(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, of string) (filescli.Config, error) {
	name, err := podName(of)
	if err != nil {
		return filescli.Config{}, err
	}
	all, err := f.openAll(cmd, connection, func(ctx context.Context, _ string, pods corev1client.PodInterface) ([]corev1.Pod, error) {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []corev1.Pod{*pod}, nil
	})
	if err != nil {
		return filescli.Config{}, err
	}
	return all[0], nil
}

// openAll connects to the sidecars of pods.
func (f *sidecarFlags) openAll(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, of func(context.Context, string, corev1client.PodInterface) ([]corev1.Pod, error)) ([]filescli.Config, error) {
	if f.port < 1 || f.port > 65535 {
		return nil, fmt.Errorf("%w: --port=%d: want 1 to 65535", console.ErrUsage, f.port)
	}
	rest, namespace, err := connect(connection)
	if err != nil {
		return nil, err
	}
	api, err := corev1client.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	pods, err := of(cmd.Context(), namespace, api.Pods(namespace))
	if err != nil {
		return nil, err
	}
	for i := range pods {
		// Another program must not get the token. Who names the port knows what listens there.
		if !cmd.Flags().Changed("port") && !slices.ContainsFunc(slices.Concat(pods[i].Spec.InitContainers, pods[i].Spec.Containers), isSidecar) {
			return nil, fmt.Errorf("%w: pod %s has no refit-sidecar, by the names and images of its containers; if it has, name its --port", console.ErrRefused, pods[i].Name)
		}
	}
	config := f.config
	if config.Token, err = f.token(cmd.Context(), api.Secrets(namespace), cmd.Flags().Changed("token-secret")); err != nil {
		return nil, err
	}
	if _, config.Output, err = output(cmd, ""); err != nil {
		return nil, err
	}
	all := make([]filescli.Config, 0, len(pods))
	for i := range pods {
		config.Pod = pods[i].Name
		if config.Client, err = podport.Client(rest, namespace, config.Pod, f.port); err != nil {
			return nil, err
		}
		all = append(all, config)
	}
	return all, nil
}

func isSidecar(c corev1.Container) bool {
	const program = "refit-sidecar"
	return strings.Contains(c.Name, program) || strings.Contains(c.Image, program) || len(c.Command) > 0 && path.Base(c.Command[0]) == program
}

// token reads the token. Without the default Secret, or the right to read it, there is none: a sidecar that listens on loopback
// only needs none.
func (f *sidecarFlags) token(ctx context.Context, secrets corev1client.SecretInterface, wanted bool) (string, error) {
	name, key, _ := strings.Cut(f.secret, "/")
	if name == "" {
		return "", nil
	}
	if key == "" {
		key = "token"
	}
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil && !wanted && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the token: %w", err)
	case len(secret.Data[key]) == 0:
		return "", fmt.Errorf("%w: Secret %s has no key %s: name it by --token-secret=%s/KEY", console.ErrUsage, name, key, name)
	}
	return strings.TrimSpace(string(secret.Data[key])), nil
}

func filesCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "files", Aliases: []string{"file"}, Short: "Change files of a running pod through its refit-sidecar", Long: filesLong,
		Args: usage.UnknownSubcommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(filesUpdateCommand(connection), filesRollbackCommand(connection), filesHistoryCommand(connection))
	return cmd
}

func filesRollbackCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var sidecar sidecarFlags
	var to string
	cmd := &cobra.Command{
		ValidArgsFunction: completing(connection, oneObject(pods)),
		Use:               "rollback (POD | pod/POD) [--to=VERSION]", Aliases: []string{"undo"}, Short: "Return to files that were accepted before", Long: filesRollbackLong, Args: usage.OneObject(),
		Example: "  kubectl refit files rollback web-0\n  kubectl refit files rollback web-0 --to=v1",
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := sidecar.open(cmd, connection, usage.Object(args))
			if err != nil {
				return err
			}
			return filescli.Rollback(cmd.Context(), config, to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`version` or ID of a revision (default: the one before the present one)")
	sidecar.add(cmd, connection, "the rollback continues")
	return cmd
}

func filesHistoryCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var sidecar sidecarFlags
	cmd := &cobra.Command{
		ValidArgsFunction: completing(connection, oneObject(pods)),
		Use:               "history (POD | pod/POD)", Aliases: []string{"revisions"}, Short: "List the accepted versions of the files", Args: usage.OneObject(),
		Long:    "List the versions of the files that the sidecar has accepted and still has, the present one first.\n\nExit codes: 0 done, 1 failed, 2 refused or wrong usage.",
		Example: "  kubectl refit files history web-0",
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := sidecar.open(cmd, connection, usage.Object(args))
			if err != nil {
				return err
			}
			return filescli.Revisions(cmd.Context(), config)
		},
	}
	sidecar.add(cmd, connection, "nothing changes")
	return cmd
}
