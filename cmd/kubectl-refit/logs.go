package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/refit-project/refit/cli/logs"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
)

const logsLong = `Show the log of a container on both sides of its last restart: the end of the previous instance, and the present one. With
--follow it goes on with the instances that come after further restarts, where "kubectl logs --follow" ends.
After several restarts the first is the latest ended instance that kubelet reports: a restart that skips kubelet's back-off removes
the instance that it stops, and its log.
A log whose stream ends while the instance is running, for example because kubelet is restarted, is opened again.

Exit codes: 0 done, 1 failed, 2 refused or wrong usage, 130 interrupted.`

func logsCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var config logs.Config
	cmd := &cobra.Command{
		ValidArgsFunction: completing(connection, oneObject(pods)),
		Use:               "logs (POD | pod/POD) [-c CONTAINER]", Short: "Show the log of a container across its restarts", Long: logsLong, Args: usage.OneObject(),
		Example: "  kubectl refit logs web-0 -c app\n  kubectl refit logs web-0 -c app --tail=100 --follow\n  kubectl refit logs web-0 -c app --since=10m --timestamps",
		RunE: func(cmd *cobra.Command, args []string) error {
			if config.Since < 0 {
				return fmt.Errorf("%w: --since must not be negative", console.ErrUsage)
			}
			if config.Since > 0 && !cmd.Flags().Changed("tail") {
				config.Tail = -1
			}
			name, err := podName(usage.Object(args))
			if err != nil {
				return err
			}
			pods, err := logReader(connection)
			if err != nil {
				return err
			}
			if config.API, config.Namespace, err = watcher(connection); err != nil {
				return err
			}
			config.Open, config.Notes = openLog(pods), cmd.ErrOrStderr()
			if err = logs.Run(cmd.Context(), config, cmd.OutOrStdout(), name); cmd.Context().Err() != nil {
				return console.ErrInterrupted
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&config.Container, "container", "c", "", "`container` whose log is shown (default: the only one)")
	flags.Int64Var(&config.Tail, "tail", 20, "`lines` of each instance that are shown; -1 for all")
	flags.DurationVar(&config.Since, "since", 0, "show only lines newer than this `duration`, as 5m; of each instance all of them, unless --tail is given")
	flags.BoolVar(&config.Timestamps, "timestamps", false, "begin each line with its time")
	flags.BoolVarP(&config.Follow, "follow", "f", false, "go on with what is written, and with the next instances")
	completeContainers(cmd, connection, "container")
	return cmd
}

// podName reads POD or pod/POD.
func podName(text string) (string, error) {
	reference := text
	if !strings.Contains(text, "/") {
		reference = "pod/" + text
	}
	kind, name, ok := console.KindName(reference)
	if !ok || !console.IsPod(kind) {
		return "", fmt.Errorf("%w: %q: want the name of a pod, as web-0 or pod/web-0", console.ErrUsage, text)
	}
	return name, nil
}

// openLog returns a function that opens the log of a container.
func openLog(pods corev1client.PodsGetter) func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
	return func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		return pods.Pods(namespace).GetLogs(pod, options).Stream(ctx)
	}
}

func logReader(connection *genericclioptions.ConfigFlags) (corev1client.PodsGetter, error) {
	rest, _, err := connect(connection)
	if err != nil {
		return nil, err
	}
	pods, err := corev1client.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return pods, nil
}
