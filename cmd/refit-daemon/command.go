package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/daemon"
	"github.com/refit-project/refit/internal/logging"
)

const long = `refit-daemon runs on every node. It executes the ContainerRecreateRequests of its node: it stops the
containers through the node's CRI socket and reports when kubelet has started them again. It also runs the pod probes
of the node's NodePodProbe, which PodProbeMarkers ask for, and writes their results to its status. It pulls the images of the
node's NodeImage, which ImagePullJobs ask for.

It waits for what is not there yet (runtime socket, API server, CRDs), and resumes after a restart.
The environment variable NODE_NAME names the node; take it from fieldRef spec.nodeName.

Flags of kruise-daemon that mean the same keep their names. Those that have no meaning here (--feature-gates and
klog's, for example) are ignored with a warning, so that the arguments of its DaemonSet can stay.`

// manyPulls is the number of concurrent pulls if no limit is wanted.
const manyPulls = 32

// options that are not part of the daemon's configuration.
type options struct {
	log         logging.Options
	backoff     string
	enablePprof bool
}

// runFunc runs the daemon. libraries is the logger for libraries that log through klog.
type runFunc func(ctx context.Context, config daemon.Config, libraries *slog.Logger) error

// newCommand returns the command line, which calls run with the configuration.
func newCommand(version string, run runFunc) *cobra.Command {
	config := daemon.Config{Version: version, Node: os.Getenv("NODE_NAME")}
	var opts options
	command := &cobra.Command{
		Use: "refit-daemon", Short: "Repairs the pods of one node in place", Long: long, Version: version,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		Example: `  NODE_NAME=node-1 refit-daemon --kubeconfig ~/.kube/config --socket-file /run/containerd/containerd.sock`,
	}
	addFlags(command.Flags(), &config, &opts)
	addIgnoredFlags(command.Flags())
	command.RunE = func(command *cobra.Command, _ []string) error {
		logger, err := opts.log.New(command.ErrOrStderr())
		if err != nil {
			return err
		}
		libraries, err := opts.log.Libraries(command.ErrOrStderr())
		if err != nil {
			return err
		}
		config.Logger = logger
		warnIgnored(command.Flags(), logger)
		if err := opts.apply(&config); err != nil {
			return err
		}
		return run(command.Context(), config, libraries)
	}
	return command
}

func addFlags(flags *pflag.FlagSet, config *daemon.Config, opts *options) {
	flags.StringVar(&config.Kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig file; empty: the pod's service account")
	flags.StringVar(&config.Socket, "socket-file", "", "CRI socket: a path, or a file name below the first --socket-root; empty: look at the usual places")
	flags.StringSliceVar(&config.SocketRoots, "socket-root", cri.DefaultRoots(), "directories to look for the CRI socket in, in this order")
	flags.StringVar(&config.Addr, "addr", ":10221", "address of /healthz and /readyz")
	flags.StringVar(&config.MetricsAddr, "metrics-addr", "127.0.0.1:10223", "address of /metrics: plain HTTP on loopback, else TLS and a bearer token that may GET /metrics; empty: off")
	flags.StringVar(&config.PprofAddr, "pprof-addr", "", "loopback address of /debug/pprof; empty, or another address: off")
	flags.BoolVar(&opts.enablePprof, "enable-pprof", true, "false: no /debug/pprof whatever --pprof-addr says")
	flags.IntVar(&config.MaxConcurrent, "max-concurrent-stops", 256, "maximum number of concurrent stops on this node; each lasts up to its grace period")
	flags.IntVar(&config.MaxPulls, "max-workers-for-pull-image", 3, "images pulled at once on this node, see docs/images.md; -1, a kruise-daemon's default: 32")
	flags.IntVar(&config.ExecProbeCPUPercent, "exec-probe-cpu-percent", 25, "how much of the node's CPUs the container runtime may use for exec probes, 1 to 100; more exec probes run later, see docs/probes.md")
	flags.StringVar(&config.PullSecretNamespace, "pull-secret-namespace", cmp.Or(os.Getenv("KRUISE_DAEMON_CONFIG_NS"), "kruise-daemon-config"), "namespace that pull secrets of NodeImages are in; others are not read")
	flags.StringVar(&config.PluginConfig, "plugin-config-file", "", "kubelet's CredentialProviderConfig: exec plugins that know credentials for pulls; empty, or no such file: none")
	flags.StringVar(&config.PluginFolder, "plugin-bin-dir", "", "folder of the programs that --plugin-config-file names")
	flags.StringVar(&opts.backoff, "restart-backoff", "skip", "skip: a requested restart does not wait for kubelet's crash back-off, at the cost of the previous instance's logs;\nrespect: it waits like a crash. The annotation refit.dev/restart-backoff of a request takes precedence")
	config.Tracing.AddFlags(flags)
	opts.log.AddFlags(flags)
}

// apply sets the fields of the configuration that several flags decide.
func (o options) apply(config *daemon.Config) error {
	if config.Socket != "" && len(config.SocketRoots) > 0 && !strings.Contains(config.Socket, ":") && !filepath.IsAbs(config.Socket) {
		config.Socket = filepath.Join(config.SocketRoots[0], config.Socket)
	}
	if o.backoff != "skip" && o.backoff != "respect" {
		return fmt.Errorf("--restart-backoff %q: want skip or respect", o.backoff)
	}
	config.RespectBackoff = o.backoff == "respect"
	if config.MaxPulls < 0 {
		config.MaxPulls = manyPulls
	}
	// kruise-daemon serves profiles, which show memory, to the whole network: ":10222" is its default.
	if config.PprofAddr != "" && !daemon.Loopback(config.PprofAddr) {
		config.Logger.Warn("no profiles are served: not a loopback address, such as 127.0.0.1:10222", "pprof-addr", config.PprofAddr)
		config.PprofAddr = ""
	}
	if !o.enablePprof {
		config.PprofAddr = ""
	}
	return nil
}
