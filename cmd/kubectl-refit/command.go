package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/refit-project/refit/cmd/kubectl-refit/setflags"
	"github.com/refit-project/refit/cmd/kubectl-refit/usage"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/policy"
)

const setLong = `Change running pods without recreating them: UID, IP, node, volumes and the other containers stay. The target is a
pod, or a Deployment, StatefulSet or DaemonSet: then the template is changed, and refit-manager updates the pods in place.

  set image       new images: kubelet replaces the containers, and only these
  set resources   requests and limits of CPU and memory: no container is stopped, unless its resizePolicy says so
  set env         environment variables that come from a label or an annotation of the pod: the containers are restarted

New images are pulled onto the pod's node first, by an ImagePullJob of refit-manager, so that the container is down for no
longer than its restart. A pull that fails leaves the pod as it is. Where nobody pulls, that is said and kubelet does it.

What cannot be changed in place is refused before anything is done, with the field, the reason and what to do instead;
--dry-run shows that, and otherwise the stages of the update. A pod with the readiness gate KruisePodReady or
InPlaceUpdateReady is taken out of its Services before its first container is stopped, and put back afterwards.

How far an update has come is recorded on the pod. If the command is interrupted or times out before it has changed a container,
it removes the record and puts the pod back into its Services. Later, or if it is killed, the record stays, and the same command
continues the update; until then the pod may be out of its Services, see docs/inplace.md. Several commands for one pod add up.

For a workload an InPlaceUpdatePolicy is created if it has none. It stays: later changes of the template, also by kubectl set image,
kubectl apply or GitOps, are made in place too, until the policy is deleted. --max-unavailable, --drain-seconds,
--ignore-pod-disruption-budgets and --canary are written to the policy, and are left as they are without the flag. --dry-run says of each
pod what would happen. The command follows the update to its end, or to the pause after --canary; the update does not depend on it.
See also kubectl refit rollout.

A pod that a workload owns can be changed by itself; the workload's template stays as it is, and the next pod it makes is as
before. Before the pod is taken out of its Services, or its first container is stopped, the command waits until no more than
--max-unavailable pods of the workload are unavailable by it, for whatever reason the others are, and until
PodDisruptionBudgets allow it; a pod without a workload asks only these. A pod that cannot become ready by itself waits
for nothing, and neither does an update that stops no container.

A pod or a workload that has what was asked for already is unchanged, which the command says; an update to it that has been begun is followed.

Exit codes: 0 the pods run with what was asked for, or the pods of --canary do, or nothing is changed, 1 failed or superseded by another change,
2 refused (nothing has been changed) or wrong usage, 124 not done within --timeout, 130 interrupted.`

// options are the flags of set.
type options struct {
	setflags.Flags
	workload   setflags.Workload
	connection *genericclioptions.ConfigFlags
	containers []string
}

func setCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	o := &options{connection: connection}
	cmd := &cobra.Command{
		Use: "set", Short: "Change images, resources or environment of running pods", Long: setLong, Args: usage.UnknownSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o.Add(cmd.PersistentFlags())
	o.workload.Add(cmd.PersistentFlags())
	completeContainers(cmd, connection, "order")
	cmd.AddCommand(setImage(o), setResources(o), setEnv(o))
	return cmd
}

func setImage(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "image (KIND/NAME | KIND NAME) CONTAINER=IMAGE...", Short: "Change the images of containers", Long: setLong, Args: usage.ObjectAndChanges(),
		ValidArgsFunction: completing(o.connection, objectThen(containersToSet)),
		Example: `  # what would happen
  kubectl refit set image pod/web app=nginx:1.29 --dry-run
  kubectl refit set image deployment/web app=nginx:1.29 --dry-run

  # all pods of a Deployment, a quarter at a time
  kubectl refit set image deployment/web app=nginx:1.29 --max-unavailable=25%

  # a tenth of the pods first; the others after a look at these
  kubectl refit set image deployment/web app=nginx:1.29 --canary=10%
  kubectl refit rollout promote deployment/web

  # 10 seconds out of its Services first, then the proxy, and when that is ready the application
  kubectl refit set image pod/web proxy=envoy:1.36 app=shop:7 --drain-seconds=10 --order=proxy --order=app`,
		RunE: func(cmd *cobra.Command, args []string) error {
			object, images := usage.ObjectThen(args)
			to, err := change.Image(images)
			return o.run(cmd, object, to, err)
		},
	}
}

func setResources(o *options) *cobra.Command {
	var to change.Sizes
	cmd := &cobra.Command{
		Use: "resources (KIND/NAME | KIND NAME) [-c CONTAINER] [--requests=...] [--limits=...]", Short: "Change requests and limits of CPU and memory",
		Long: setLong, Args: usage.OneObject(), ValidArgsFunction: completing(o.connection, objectThen(nothingMore)),
		Example: `  # more CPU and memory for one container; what is not named stays
  kubectl refit set resources pod/web -c app --requests=cpu=500m --limits=cpu=1,memory=512Mi

  # the same for all pods of a StatefulSet
  kubectl refit set resources statefulset/db -c app --requests=cpu=500m --limits=cpu=1,memory=512Mi`,
		RunE: func(cmd *cobra.Command, args []string) error {
			to.Containers = o.containers
			asked, err := change.Resources(to)
			return o.run(cmd, usage.Object(args), asked, err)
		},
	}
	o.containerFlag(cmd)
	cmd.Flags().StringVar(&to.Requests, "requests", "", "`RESOURCE=QUANTITY,...`, as cpu=200m,memory=256Mi")
	cmd.Flags().StringVar(&to.Limits, "limits", "", "`RESOURCE=QUANTITY,...`, as cpu=1,memory=512Mi")
	return cmd
}

func setEnv(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "env (KIND/NAME | KIND NAME) NAME=VALUE... [-c CONTAINER]", Short: "Change environment variables that come from labels or annotations",
		Long: setLong, Args: usage.ObjectAndChanges(), ValidArgsFunction: completing(o.connection, objectThen(variables)),
		Example: `  # LEVEL has valueFrom.fieldRef metadata.annotations['level'] in the pod's spec
  kubectl refit set env pod/web LEVEL=debug`,
		RunE: func(cmd *cobra.Command, args []string) error {
			object, values := usage.ObjectThen(args)
			to, err := change.Env(o.containers, values)
			return o.run(cmd, object, to, err)
		},
	}
	o.containerFlag(cmd)
	return cmd
}

func (o *options) containerFlag(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&o.containers, "container", "c", nil, "only these containers (default: all that are kept running)")
	completeContainers(cmd, o.connection, "container")
}

func (o *options) run(cmd *cobra.Command, what string, how change.Change, err error) error {
	if err != nil {
		return err
	}
	if kind, _, ok := console.KindName(what); !ok || !console.IsPod(kind) {
		return o.runWorkload(cmd, what, how)
	}
	target, err := inplacecli.ParseTarget(what)
	for _, err := range []error{err, o.Check(cmd.Flags()), o.workload.CheckPod(cmd.Flags())} {
		if err != nil {
			return err
		}
	}
	to, namespace, err := connect(o.connection)
	if err != nil {
		return err
	}
	config, err := o.Config(to)
	if err != nil {
		return err
	}
	config.Output = console.NewOutput(cmd.OutOrStdout(), terminal(cmd.OutOrStdout()))
	return inplacecli.Update(cmd.Context(), config, namespace, target, how)
}

// runWorkload changes the template of a workload.
func (o *options) runWorkload(cmd *cobra.Command, what string, how change.Change) error {
	target, err := policy.ParseTarget(what)
	if err != nil {
		return err
	}
	config, err := o.workload.Config(&o.Flags, cmd.Flags())
	if err != nil {
		return err
	}
	if config.Config, err = policyConfig(cmd, o.connection, config.Timeout); err != nil {
		return err
	}
	return policy.Set(cmd.Context(), config, target, policy.Change(how))
}

func terminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
