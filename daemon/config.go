package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/internal/tracing"
)

// Config of the daemon. See cmd/refit-daemon for the flags and their defaults.
type Config struct {
	// Node is the name of the node this daemon runs on. It handles objects of this node only.
	Node string
	// Kubeconfig is a file; empty means the pod's service account.
	Kubeconfig string
	// Socket is the runtime's socket, a path or a file name below one of SocketRoots; empty searches for it.
	Socket      string
	SocketRoots []string
	// Addr serves /healthz and /readyz, which kubelet must reach.
	Addr string
	// MetricsAddr serves /metrics: over plain HTTP on a loopback address, else over TLS to callers whose token the API
	// server authorizes to GET /metrics. Empty disables it.
	MetricsAddr string
	// PprofAddr serves net/http/pprof on a loopback address. Empty disables it.
	PprofAddr string
	// MaxConcurrent bounds the number of concurrent stops. Each may last for its grace period.
	MaxConcurrent int
	// MaxPulls bounds the number of concurrent pulls; at least 1.
	MaxPulls int
	// ExecProbeCPUPercent is how much of the node's CPUs the runtime may use for exec probes, 1 to 100.
	ExecProbeCPUPercent int
	// PullSecretNamespace is the only namespace from which pull secrets are read.
	PullSecretNamespace string
	// PluginConfig is kubelet's configuration file of credential providers, whose programs are in PluginFolder. Empty
	// disables them.
	PluginConfig, PluginFolder string
	// Tracing has the endpoint for traces; without one there are none.
	Tracing tracing.Options
	// RespectBackoff makes requested restarts wait for kubelet's crash back-off by default.
	RespectBackoff bool
	// Version of the program, for build info and the user agent.
	Version string
	Logger  *slog.Logger
}

// Validate returns all errors at once.
func (c Config) Validate() error {
	var errs []error
	if c.Node == "" {
		errs = append(errs, errors.New("node name: not set; give the daemon the environment variable NODE_NAME from fieldRef spec.nodeName"))
	} else if len(c.Node) > validation.LabelValueMaxLength {
		errs = append(errs, fmt.Errorf("node name %q: longer than %d characters, so no request can carry it as a label", c.Node, validation.LabelValueMaxLength))
	}
	if c.MaxConcurrent < 1 {
		errs = append(errs, fmt.Errorf("--max-concurrent-stops %d: must be at least 1", c.MaxConcurrent))
	}
	if c.MaxPulls < 1 {
		errs = append(errs, fmt.Errorf("--max-workers-for-pull-image %d: must be at least 1", c.MaxPulls))
	}
	if c.ExecProbeCPUPercent < 1 || c.ExecProbeCPUPercent > 100 {
		errs = append(errs, fmt.Errorf("--exec-probe-cpu-percent %d: must be 1 to 100", c.ExecProbeCPUPercent))
	}
	if c.PluginConfig != "" && c.PluginFolder == "" {
		errs = append(errs, errors.New("--plugin-config-file needs --plugin-bin-dir, the folder of the programs that it names"))
	}
	errs = append(errs, listenable("--addr", c.Addr))
	errs = append(errs, c.Tracing.Validate())
	if c.MetricsAddr != "" {
		errs = append(errs, listenable("--metrics-addr", c.MetricsAddr))
	}
	if c.PprofAddr != "" {
		errs = append(errs, listenable("--pprof-addr", c.PprofAddr))
		if !Loopback(c.PprofAddr) {
			errs = append(errs, fmt.Errorf("--pprof-addr %s: must be a loopback address, such as 127.0.0.1:10222: profiles show memory", c.PprofAddr))
		}
	}
	if c.Logger == nil {
		errs = append(errs, errors.New("logger: not set"))
	}
	return errors.Join(errs...)
}

func listenable(flag, addr string) error {
	if _, err := net.ResolveTCPAddr("tcp", addr); err != nil || addr == "" {
		return fmt.Errorf("%s %q: want host:port or :port", flag, addr)
	}
	return nil
}

// Loopback reports whether only processes of the node, or of the pod, can reach addr, such as "127.0.0.1:10222".
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
