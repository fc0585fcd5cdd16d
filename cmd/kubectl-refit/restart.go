package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cli/completion"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	"github.com/refit-project/refit/internal/console"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
)

const restartLong = `Restart containers in place: the pods stay, with their UIDs, IPs, nodes and volumes, and so do their other containers.

For one pod a ContainerRecreateRequest is created. For a workload, or the pods that --selector matches, a RestartRollout
is created, which restarts a few pods at a time and goes on when this command ends: the pods that are unavailable, for
whatever reason, never become more than --max-unavailable by it, and PodDisruptionBudgets are respected. It stops at the
first pod whose restart fails.

Several pods and workloads are restarted one after another, each to its end. All are checked before the first one; a restart that
fails ends the command. A workload with 0 replicas is left out. Without --wait all of them begin at once. With --filename
the pods and workloads in files are restarted, and the other objects in them are left as they are.

--max-unavailable, --partition, --continue-on-failure and --ignore-pod-disruption-budgets are about several pods, and are refused
for pod/NAME.

With --output=json or yaml the object is printed as it is at the end, also of a restart that has failed or timed out; without
--wait, as it was created.

Without --container the only container of the pods is restarted. Ctrl-C leaves the restart as it is, and says how to
follow or stop it.

Exit codes: 0 done, 1 failed, 2 refused (nothing has been done) or wrong usage, 124 not done within --timeout, 130 interrupted.`

const restartExample = `  # one container of one pod
  kubectl refit restart pod/web-0 -c app --reason="stale connections"

  # what would happen to a Deployment
  kubectl refit restart deployment/web -c app --max-unavailable=25% --dry-run

  # two containers of every pod of a StatefulSet, 10 s out of its Services before the first is stopped
  kubectl refit restart statefulset/db -c proxy,app --drain-seconds=10

  # three workloads, one after another
  kubectl refit restart deployment web api worker -c app

  # the Deployments with a label, and what is in the manifests of an application
  kubectl refit restart deployment -l tier=front -c app
  kubectl refit restart -f manifests/ -c app

  # a sidecar wherever it runs in the namespace; do not wait
  kubectl refit restart -l mesh=on -c proxy --wait=false

  # in a script: show when it happened
  kubectl refit timeline "$(kubectl refit restart pod/web-0 -c app -o name)"

  # the RestartRollout as it is at the end
  kubectl refit restart deployment/web -c app -o json | jq .status.restartedPods`

func restartCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var config rolloutcli.Config
	selected := targets{connection: connection}
	var maxUnavailable, partition, format string
	var drain, minReady int32
	var grace int64
	cmd := &cobra.Command{
		ValidArgsFunction: completing(connection, severalObjects(completion.Workloads...)),
		Use:               "restart (KIND/NAME... | KIND NAME... | [KIND] -l SELECTOR | -f FILE) [-c CONTAINER,...]",
		Short:             "Restart containers of pods or of workloads in place", Long: restartLong, Example: restartExample,
		Args: usage.Arguments(func(_ *cobra.Command, args []string) error {
			_, err := usage.Objects(args)
			return err
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := selected.of(args)
			if err != nil {
				return err
			}
			if err := checkRestartFlags(cmd.Flags(), all); err != nil {
				return err
			}
			if cmd.Flags().Changed("max-unavailable") {
				config.Rollout.MaxUnavailable = new(intstr.Parse(maxUnavailable))
			}
			if cmd.Flags().Changed("partition") {
				config.Rollout.Partition = new(intstr.Parse(partition))
			}
			if cmd.Flags().Changed("min-ready-seconds") {
				config.MinReadySeconds = &minReady
			}
			if cmd.Flags().Changed("drain-seconds") {
				config.DrainSeconds = &drain
			}
			if cmd.Flags().Changed("grace-period") {
				config.GracePeriodSeconds = &grace
			}
			if config.Made, config.Output, err = output(cmd, format); err != nil {
				return err
			}
			if config.API, config.Namespace, err = watcher(connection); err != nil {
				return err
			}
			return rolloutcli.Run(cmd.Context(), config, all...)
		},
	}
	flags := cmd.Flags()
	selected.add(flags)
	flags.StringSliceVarP(&config.Containers, "container", "c", nil, "`containers` to restart, which are stopped in this order")
	flags.StringVar(&config.Reason, "reason", "", "why, in one line; it is shown in Events")
	flags.StringVar(&maxUnavailable, "max-unavailable", "1", "how many of the pods may be unavailable at a time, as `number or percentage`")
	flags.StringVar(&partition, "partition", "0", "how many of the pods are left as they are, as `number or percentage`")
	flags.Int32Var(&minReady, "min-ready-seconds", 0, "`seconds` that a pod must be ready after its restart to count as available (default: minReadySeconds of the workload); for one pod, that its containers must run to count as restarted")
	flags.BoolVar(&config.Rollout.ContinueOnFailure, "continue-on-failure", false, "restart the other pods although the restart of one has failed")
	flags.BoolVar(&config.Rollout.IgnorePodDisruptionBudgets, "ignore-pod-disruption-budgets", false, "restart pods although a PodDisruptionBudget allows no disruption")
	flags.Int32Var(&drain, "drain-seconds", 0, "`seconds` for which a pod is out of its Services before its first container is stopped; it needs the readiness gate KruisePodReady")
	flags.Int64Var(&grace, "grace-period", 0, "`seconds` between TERM and KILL (default: the pod's)")
	flags.BoolVar(&config.Wait, "wait", true, "follow the restart to its end")
	usage.TimeoutFlag(flags, &config.Timeout, "the restart continues")
	usage.DryRunFlag(flags, &config.DryRun, "explain what would be done, or refused, and do nothing: server or client, which are the same, or none")
	madeFlag(cmd, &format)
	completeContainers(cmd, connection, "container")
	return cmd
}

// ofSeveralPods are the flags of restart for several pods.
var ofSeveralPods = []string{"max-unavailable", "partition", "continue-on-failure", "ignore-pod-disruption-budgets"}

// checkRestartFlags refuses values that the API would refuse, and flags that have no meaning for the target.
func checkRestartFlags(flags *pflag.FlagSet, targets []rolloutcli.Target) error {
	if slices.ContainsFunc(targets, func(target rolloutcli.Target) bool { return target.Pod != "" }) {
		for _, name := range ofSeveralPods {
			if flags.Changed(name) {
				return fmt.Errorf("%w: --%s has no meaning for one pod", console.ErrUsage, name)
			}
		}
	}
	if err := usage.MaxUnavailable(flags.Lookup("max-unavailable").Value.String()); err != nil {
		return err
	}
	if err := usage.Partition(flags.Lookup("partition").Value.String()); err != nil {
		return err
	}
	return usage.NotNegative(flags, "min-ready-seconds", "drain-seconds", "grace-period")
}
