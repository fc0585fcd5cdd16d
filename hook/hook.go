package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/wait"
)

// Sentinels of Run.
var (
	// ErrUnsupported: there is no way to run a handler of this kind here, or for kubelet either.
	ErrUnsupported = errors.New("not supported")
	// ErrTimeout: the hook was still running at the end of its time and was cut off.
	ErrTimeout = errors.New("cut off at the end of the grace period")
)

// Call is one run of a hook. Handler has to be that of the pod: never run one that others may have written, since
// who chooses a command runs it with all permissions of the container.
type Call struct {
	Pod       *corev1.Pod
	Container string
	ID        identity.ContainerID // the instance in which a command runs
	Handler   *corev1.LifecycleHandler
	Timeout   time.Duration // what is left of the grace period; must be positive
}

// Output of a command that has ended.
type Output struct {
	Stdout, Stderr string
	ExitCode       int32
}

// Executor runs a command in one instance of a container and kills it after timeout.
type Executor interface {
	Exec(ctx context.Context, id identity.ContainerID, command []string, timeout time.Duration) (Output, error)
}

// Addresses knows where the ports of a pod can be reached.
type Addresses interface {
	PodIP(ctx context.Context, pod *corev1.Pod) (string, error)
}

// Config of a Runner.
type Config struct {
	Executor  Executor // nil: a command is ErrUnsupported
	Addresses Addresses
}

// Runner runs hooks. It is safe for concurrent use.
type Runner struct {
	config Config
	client *http.Client

	mu   sync.Mutex
	runs map[identity.ContainerID]*run
}

// New returns a Runner.
func New(config Config) *Runner {
	return &Runner{config: config, client: newClient(), runs: map[identity.ContainerID]*run{}}
}

// Run runs a hook to its end, for no longer than its time, unless it has been run for this instance before: who stops an
// instance that another is stopping waits for the hook of that one. A hook that failed is run again. As kubelet does, go on
// with the stop whatever the error is.
func (r *Runner) Run(ctx context.Context, call Call) error {
	ctx, cancel := context.WithTimeoutCause(ctx, call.Timeout, ErrTimeout)
	defer cancel()
	if call.ID.IsZero() {
		return r.run(ctx, call)
	}
	return r.once(ctx, call)
}

func (r *Runner) run(ctx context.Context, call Call) error {
	switch handler := call.Handler; {
	case handler.Exec != nil:
		return r.exec(ctx, call)
	case handler.HTTPGet != nil:
		return r.get(ctx, call)
	case handler.Sleep != nil:
		return sleep(ctx, time.Duration(handler.Sleep.Seconds)*time.Second)
	case handler.TCPSocket != nil:
		return fmt.Errorf("tcpSocket: %w, and not by kubelet either", ErrUnsupported)
	default:
		return fmt.Errorf("hook without exec, httpGet or sleep: %w", ErrUnsupported)
	}
}

func (r *Runner) exec(ctx context.Context, call Call) error {
	if r.config.Executor == nil {
		return fmt.Errorf("exec: %w without a container runtime: only httpGet and sleep can be run", ErrUnsupported)
	}
	output, err := r.config.Executor.Exec(ctx, call.ID, call.Handler.Exec.Command, call.Timeout)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("exec: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("exec: %w", err)
	case output.ExitCode != 0:
		return fmt.Errorf("exec: exit code %d: %s", output.ExitCode, clip(cmp.Or(output.Stderr, output.Stdout)))
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if wait.For(ctx, d) != nil {
		return fmt.Errorf("sleep: %w", context.Cause(ctx))
	}
	return nil
}

// clip bounds text of a container on its way to Events and logs.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
