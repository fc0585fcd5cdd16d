package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/refit-project/refit/cli/why"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/policy"
)

const whyLong = `Say of each container of a pod why it was restarted last:

  Requested       by a ContainerRecreateRequest: which, by whom and why
  UpdatedInPlace  by an in-place update of the pod: when, with which image, and by which InPlaceUpdatePolicy
  Ended           by itself or by kubelet: with exit code or signal, and the last lines of its log
  Unknown         nothing is left to tell from
  NotRestarted

and which of its probes have failed, and what it waits for, as kubelet's back-off and until when; and how an update of its workload in place stands. A request is found as long as it
exists; probes are known from Events, which the cluster keeps for an hour.

For a Deployment, StatefulSet or DaemonSet: what its update in place waits for. Its InPlaceUpdatePolicy with the conditions, and each pod
in the order of the updates, with its state and why it is not updated yet.

Exit codes: 0 done, 1 failed, 2 refused or wrong usage.`

func whyCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var config why.Config
	cmd := &cobra.Command{
		ValidArgsFunction: completing(connection, podsAndWorkloads),
		Use:               "why (POD | KIND/NAME | KIND NAME)", Short: "Explain the last restarts of a pod, or what an update waits for", Long: whyLong, Args: usage.OneObject(),
		Example: `  kubectl refit why web-0
  kubectl refit why web-0 -c app --tail=20
  kubectl refit why web-0 -o json
  kubectl refit why deployment/web`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if target, err := policy.ParseTarget(usage.Object(args)); err == nil {
				return whyWorkload(cmd, connection, target)
			}
			name, err := podName(usage.Object(args))
			if err != nil {
				return err
			}
			if config.Format != "" && config.Format != "json" && config.Format != "yaml" {
				return fmt.Errorf("%w: --output=%s: want json or yaml", console.ErrUsage, config.Format)
			}
			api, namespace, err := watcher(connection)
			if err != nil {
				return err
			}
			pods, err := logReader(connection)
			if err != nil {
				return err
			}
			config.API, config.Namespace, config.Logs = api, namespace, previousLogs(pods)
			return why.Run(cmd.Context(), config, cmd.OutOrStdout(), name)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&config.Containers, "container", "c", nil, "only these `containers` (default: all)")
	flags.Int64Var(&config.Lines, "tail", 5, "`lines` of the log of the previous instance that are shown")
	flags.StringVarP(&config.Format, "output", "o", "", "json or yaml, instead of text")
	completeContainers(cmd, connection, "container")
	completeFormats(cmd, []string{"json", "yaml"})
	return cmd
}

// ofContainers are the flags of why that are about containers.
var ofContainers = []string{"container", "tail", "output"}

// whyWorkload says what the update of a workload waits for.
func whyWorkload(cmd *cobra.Command, connection *genericclioptions.ConfigFlags, target policy.Target) error {
	for _, name := range ofContainers {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("%w: --%s has no meaning for a workload", console.ErrUsage, name)
		}
	}
	config, err := policyConfig(cmd, connection, 0)
	if err != nil {
		return err
	}
	return policy.Why(cmd.Context(), config, target)
}

// previousLogs reads the last lines of previous instances, at most 64 KiB.
func previousLogs(pods corev1client.PodsGetter) why.Logs {
	return func(ctx context.Context, namespace, pod, container string, lines int64) (string, error) {
		const most = 64 << 10
		stream, err := pods.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Previous: true, TailLines: &lines, LimitBytes: new(int64(most))}).Stream(ctx)
		if err != nil {
			return "", err
		}
		defer stream.Close()
		text, err := io.ReadAll(io.LimitReader(stream, most))
		return string(text), err
	}
}
