package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/refit-project/refit/test/cluster/gateway"
	"github.com/refit-project/refit/test/cluster/lifecycle"
	"github.com/refit-project/refit/test/cluster/mounts"
	"github.com/refit-project/refit/test/cluster/power"
	"github.com/refit-project/refit/test/cluster/process"
)

// componentCommands are those that break a running cluster and mend it.
func componentCommands(open opener) []*cobra.Command {
	var kill bool
	// Of a control plane component the node stays empty, of others it is the first one unless named.
	run := func(do func(*cobra.Command, *lifecycle.Cluster, string, string) error) func(*cobra.Command, []string) error {
		return func(command *cobra.Command, args []string) error {
			cluster, _, err := open()
			if err != nil {
				return err
			}
			return do(command, cluster, args[0], append(args, "")[1])
		}
	}
	stop := func(command *cobra.Command, cluster *lifecycle.Cluster, name, node string) error {
		return cluster.Stop(command.Context(), name, node, kill)
	}
	start := func(command *cobra.Command, cluster *lifecycle.Cluster, name, node string) error {
		return cluster.Start(command.Context(), name, node, kubeletOptions())
	}
	restart := func(command *cobra.Command, cluster *lifecycle.Cluster, name, node string) error {
		if err := stop(command, cluster, name, node); err != nil {
			return err
		}
		return start(command, cluster, name, node)
	}
	crash := func(_ *cobra.Command, cluster *lifecycle.Cluster, name, node string) error {
		return cluster.Kill(name, node)
	}
	pause := func(_ *cobra.Command, cluster *lifecycle.Cluster, name, node string) error {
		return cluster.Suspend(name, node)
	}
	resume := func(_ *cobra.Command, cluster *lifecycle.Cluster, name, node string) error {
		return cluster.Resume(name, node)
	}
	commands := []*cobra.Command{
		{Use: "stop", Short: "Stop a component with SIGTERM, until it is started again", RunE: run(stop)},
		{Use: "kill", Short: "Kill a component with SIGKILL; it is started again after a second", RunE: run(crash)},
		{Use: "start", Short: "Start a component that is stopped", RunE: run(start)},
		{Use: "restart", Short: "Stop and start a component", RunE: run(restart)},
		{Use: "pause", Short: "Suspend a component with SIGSTOP", RunE: run(pause)},
		{Use: "resume", Short: "Let a suspended component go on", RunE: run(resume)},
	}
	for _, command := range commands {
		if command.Use == "stop" || command.Use == "restart" {
			command.Flags().BoolVar(&kill, "kill", false, "with SIGKILL at once")
		}
		command.Use += " COMPONENT [NODE]"
		command.Args = cobra.RangeArgs(1, 2)
		command.Long = command.Short + ": etcd, apiserver, controller-manager, scheduler or, on a node\n" +
			"(default node-1), containerd, kubelet, kube-proxy. Returns without waiting for the component to be ready."
	}
	return commands
}

// powerCommand is what happens to a whole node.
func powerCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "power on|off NODE",
		Short: "Kill every process of a node, as a power failure does, or start its programs again",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, dir, err := open()
			if err != nil {
				return err
			}
			switch args[0] {
			case "off":
				return power.Off(command.Context(), dir, args[1], lifecycle.NodeComponents)
			case "on":
				for _, name := range lifecycle.NodeComponents {
					if err := cluster.Start(command.Context(), name, args[1], kubeletOptions()); err != nil {
						return err
					}
				}
				return nil
			}
			return fmt.Errorf("power %q: want on or off", args[0])
		},
	}
}

func diskCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "disk full|free NODE",
		Short: "Leave no room on the disk of a node's container runtime, or give it back; the cluster has to be up with NODE_DISK",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			_, dir, err := open()
			if err != nil {
				return err
			}
			switch args[0] {
			case "full":
				return power.FillDisk(command.Context(), dir, args[1])
			case "free":
				return power.FreeDisk(dir, args[1])
			}
			return fmt.Errorf("disk %q: want full or free", args[0])
		},
	}
}

// execCommand and those below are what the cluster's own processes start as.
func execCommand() *cobra.Command {
	var where process.Namespaces
	command := &cobra.Command{
		Use:    "exec -- PATH ARGS...",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, argv []string) error {
			return process.Exec(where, argv, os.Environ())
		},
	}
	command.Flags().IntVar(&where.Net, "net", 0, "process whose network namespace to enter")
	command.Flags().IntVar(&where.Mount, "mount", 0, "process whose mount namespace to enter")
	command.Flags().StringVar(&where.Cgroup, "cgroup", "", "cgroup to join")
	return command
}

func superviseCommand() *cobra.Command {
	var record string
	command := &cobra.Command{
		Use:    "supervise -- PATH ARGS...",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, argv []string) error {
			return process.Supervise(command.Context(), record, argv)
		},
	}
	command.Flags().StringVar(&record, "record", "", "file that remembers this process")
	return command
}

func holdCommand() *cobra.Command {
	var folder string
	command := &cobra.Command{
		Use:    "hold",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			const answer = 3
			return mounts.Hold(command.Context(), folder, os.Getenv("NODE_DISK"), os.NewFile(answer, "answer"))
		},
	}
	command.Flags().StringVar(&folder, "folder", "", "the node's folder")
	return command
}

func gatewayCommand() *cobra.Command {
	var config gateway.Config
	command := &cobra.Command{
		Use:    "gateway",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return gateway.Run(command.Context(), config)
		},
	}
	command.Flags().IntVar(&config.Node, "node", 0, "process in the first node's network namespace")
	command.Flags().IntVar(&config.APIPort, "api-port", 0, "port of the API server")
	command.Flags().IntVar(&config.RegistryPort, "registry-port", 0, "port of the registry")
	command.Flags().StringVar(&config.Blobs, "blobs", "", "folder of the images' layers")
	return command
}
