// Command cluster runs a real Kubernetes on this machine for the tests of the checkout it is called in.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/refit-project/refit/test/cluster/build"
	"github.com/refit-project/refit/test/cluster/lifecycle"
	"github.com/refit-project/refit/test/cluster/programs"
	"github.com/refit-project/refit/test/cluster/progress"
	"github.com/refit-project/refit/test/cluster/state"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

const about = `A real Kubernetes on this machine, one for each checkout: etcd, kube-apiserver, kube-controller-manager,
kube-scheduler and, on every node, kubelet, containerd, runc and kube-proxy, in network and mount namespaces of
their own, so that nothing of the machine is in the way or changed. The first start on a machine builds them
(15 minutes of CPU time) and keeps them in $XDG_CACHE_HOME/refit/cluster; later starts take seconds.

  cluster build                    build and download what up needs
  cluster up                       bring it up, or complete what is missing
  NODES=2 cluster up               with two nodes
  .cluster/enter CMD...            run CMD in its network
  cluster stop kubelet node-2      break something; see also start, restart, kill, pause, resume, power and disk
  cluster down                     leave nothing behind

Everything is in .cluster/ of the checkout: kubeconfig (works from the machine and inside), registry (the
host:port to push images to, the same on both sides), logs/ with the API server's audit.log,
nodes/NODE/containerd.sock, nodes/NODE/run (what the node and its pods see as /run) and bin/ with kubectl, ctr
and this program. Inside, containerd takes every image of every registry from the local one, by its path:
docker.io/library/nginx:1.22 is library/nginx:1.22 there. It has busybox (1.35, 1.36, latest) and nginx
(1.22, 1.23, latest).

Environment: NODES (nodes to have at least), KUBERNETES (1.37, or 1.36, 1.34, 1.31), NODE_DISK (size, such as 2G, of a disk
in memory for the container runtime of each node started from now on), KUBELET_FEATURE_GATES (Name=true,Other=false) and
KUBELET_CRI_SOCKET (a path on the node) for kubelets started from now on, TIMEOUT_FACTOR (how many times longer than
usual up waits, on a slow machine).`

func root() *cobra.Command {
	var checkout string
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A real Kubernetes for tests",
		Long:          about,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVar(&checkout, "checkout", "", "root of the checkout (default: the one the current folder is in)")
	open := func() (*lifecycle.Cluster, state.Dir, error) {
		dir, err := find(checkout)
		if err != nil {
			return nil, dir, err
		}
		cluster, err := lifecycle.Open(dir, os.Stdout)
		return cluster, dir, err
	}
	root.AddCommand(buildCommand(open), upCommand(open), downCommand(open), statusCommand(open), loadCommand(open), enterCommand(open), powerCommand(open), diskCommand(open))
	root.AddCommand(componentCommands(open)...)
	root.AddCommand(execCommand(), superviseCommand(), holdCommand(), gatewayCommand())
	return root
}

type opener func() (*lifecycle.Cluster, state.Dir, error)

func find(checkout string) (state.Dir, error) {
	if checkout != "" {
		return state.Find(checkout)
	}
	return state.Find(".")
}

func kubeletOptions() lifecycle.KubeletOptions {
	options := lifecycle.KubeletOptions{CRISocket: os.Getenv("KUBELET_CRI_SOCKET")}
	if gates := os.Getenv("KUBELET_FEATURE_GATES"); gates != "" {
		options.FeatureGates = strings.Split(gates, ",")
	}
	return options
}

func upCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up, or complete what is missing",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			nodes, err := number("NODES")
			if err != nil {
				return err
			}
			factor, err := number("TIMEOUT_FACTOR")
			if err != nil {
				return err
			}
			cluster, dir, err := open()
			if err != nil {
				return err
			}
			return cluster.Up(command.Context(), lifecycle.Options{
				Sources: sources(dir, os.Getenv("KUBERNETES")),
				Nodes:   int(nodes),
				Kubelet: kubeletOptions(),

				TimeoutFactor: factor,
			})
		},
	}
}

// number is the value of an environment variable, 1 where there is none.
func number(variable string) (uint8, error) {
	value := os.Getenv(variable)
	if value == "" {
		return 1, nil
	}
	number, err := strconv.ParseUint(value, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%s=%s: %w", variable, value, err)
	}
	return uint8(number), nil
}

func buildCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build and download what up needs, and start nothing",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, dir, err := open()
			if err != nil {
				return err
			}
			kubernetes := cmp.Or(os.Getenv("KUBERNETES"), build.DefaultKubernetes)
			_, err = programs.Get(command.Context(), sources(dir, kubernetes), progress.New(os.Stdout), os.Stdout)
			return err
		},
	}
}

func sources(dir state.Dir, kubernetes string) programs.Sources {
	return programs.Sources{Module: filepath.Join(dir.Checkout(), "test", "cluster"), Kubernetes: kubernetes}
}

func downCommand(open opener) *cobra.Command {
	var keepLogs bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Take the cluster down and leave nothing behind",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, _, err := open()
			if err != nil {
				return err
			}
			return cluster.Down(command.Context(), keepLogs)
		},
	}
	command.Flags().BoolVar(&keepLogs, "keep-logs", false, "keep .cluster/logs")
	return command
}

func statusCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what runs; fails when a node is not ready",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, _, err := open()
			if err != nil {
				return err
			}
			return cluster.Status(command.Context())
		},
	}
}

func loadCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE.tar...",
		Short: "Push image archives (OCI layout or docker save) to the cluster's registry",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, archives []string) error {
			cluster, _, err := open()
			if err != nil {
				return err
			}
			for _, archive := range archives {
				names, err := cluster.Load(command.Context(), archive)
				if err != nil {
					return err
				}
				fmt.Println(strings.Join(names, "\n"))
			}
			return nil
		},
	}
}

func enterCommand(open opener) *cobra.Command {
	var node string
	command := &cobra.Command{
		Use:   "enter [--node NODE] -- CMD...",
		Short: "Run a command in the cluster's network",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, argv []string) error {
			cluster, _, err := open()
			if err != nil {
				return err
			}
			return cluster.Enter(node, argv)
		},
	}
	command.Flags().StringVar(&node, "node", lifecycle.DefaultNode(), "the node whose network it is")
	return command
}
