package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/daemon"
)

const long = `refit-daemon runs on every node and restarts containers in place: it takes the ContainerRecreateRequests of its
node, stops the containers through the node's CRI socket, and reports when kubelet has started them again.
It also probes the node's pods for PodProbeMarkers, as the node's NodePodProbe says, and writes there what they answer.

It waits for what is not there yet (runtime socket, API server, CRDs) and resumes where it was after a restart.
The environment variable NODE_NAME names the node; take it from fieldRef spec.nodeName.

Flags of kruise-daemon that mean the same keep their names. Those that have no meaning here (--feature-gates and
klog's) are accepted and ignored, so that its DaemonSet arguments can stay.`

// options that are not the daemon's own.
type options struct {
	logFormat string
	verbosity int
	level     slog.Level
}

func newCommand(version string) *cobra.Command {
	config := daemon.Config{Version: version, Node: os.Getenv("NODE_NAME")}
	var opts options
	command := &cobra.Command{
		Use: "refit-daemon", Short: "Repairs the pods of one node in place", Long: long, Version: version,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		Example: `  NODE_NAME=node-1 refit-daemon --kubeconfig ~/.kube/config --socket-file /run/containerd/containerd.sock`,
		RunE: func(command *cobra.Command, _ []string) error {
			logger, err := opts.logger(command.ErrOrStderr(), opts.level)
			if err != nil {
				return err
			}
			libraries, err := opts.logger(command.ErrOrStderr(), max(opts.level, slog.LevelInfo))
			if err != nil {
				return err
			}
			klog.SetSlogLogger(libraries)
			config.Logger = logger
			return daemon.Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig file; empty: the pod's service account")
	flags.StringVar(&config.Socket, "socket-file", "", "CRI socket: a path, or a file name below the first --socket-root; empty: look at the usual places")
	flags.StringSliceVar(&config.SocketRoots, "socket-root", cri.DefaultRoots(), "directories to look for the CRI socket in, in this order")
	flags.StringVar(&config.Addr, "addr", ":10221", "address of /healthz and /readyz")
	flags.StringVar(&config.MetricsAddr, "metrics-addr", "127.0.0.1:10223", "address of /metrics: plain HTTP on loopback, else TLS and a bearer token that may GET /metrics; empty: off")
	flags.StringVar(&config.PprofAddr, "pprof-addr", "", "loopback address of /debug/pprof; empty: off")
	flags.IntVar(&config.MaxConcurrent, "max-concurrent-stops", 256, "stops under way at once on this node, each of which lasts for up to its grace period")
	backoff := flags.String("restart-backoff", "skip", "skip: a requested restart does not wait for kubelet's crash back-off, at the cost of the previous instance's logs;\nrespect: it waits like a crash. The annotation refit.dev/restart-backoff of a request decides otherwise")
	flags.StringVar(&opts.logFormat, "log-format", "text", "text or json")
	flags.TextVar(&opts.level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	acceptKruiseFlags(flags, &opts)
	command.PreRunE = func(*cobra.Command, []string) error {
		if config.Socket != "" && len(config.SocketRoots) > 0 && !strings.Contains(config.Socket, ":") && !filepath.IsAbs(config.Socket) {
			config.Socket = filepath.Join(config.SocketRoots[0], config.Socket)
		}
		config.RespectBackoff = *backoff == "respect"
		if *backoff != "skip" && *backoff != "respect" {
			return fmt.Errorf("--restart-backoff %q: want skip or respect", *backoff)
		}
		return nil
	}
	return command
}

// acceptKruiseFlags takes what kruise-daemon's manifests pass and has no meaning here.
func acceptKruiseFlags(flags *pflag.FlagSet, opts *options) {
	flags.IntVarP(&opts.verbosity, "v", "v", 0, "klog verbosity of kruise-daemon: ignored")
	for _, name := range []string{"feature-gates", "logtostderr", "enable-pprof", "max-workers-for-pull-image", "rest-config-qps", "rest-config-burst"} {
		flags.String(name, "", "of kruise-daemon: ignored")
		flags.Lookup(name).NoOptDefVal = "true"
	}
	for _, name := range []string{"v", "feature-gates", "logtostderr", "enable-pprof", "max-workers-for-pull-image", "rest-config-qps", "rest-config-burst"} {
		flags.Lookup(name).Hidden = true
	}
}

func (o options) logger(out io.Writer, level slog.Level) (*slog.Logger, error) {
	handlerOptions := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(out, handlerOptions)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, handlerOptions)), nil
	default:
		return nil, fmt.Errorf("--log-format %q: want text or json", o.logFormat)
	}
}
