package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/wait"
)

// Errors of Run.
var (
	// ErrUnsupported means that a handler of this kind cannot be run here, or not by kubelet either.
	ErrUnsupported = errors.New("not supported")
	// ErrTimeout means that the hook was still running when its time was over, and was cancelled.
	ErrTimeout = errors.New("cut off at the end of the grace period")
)

// Call is one run of a hook. Handler must come from the pod: never run one that others may have written, because its
// command runs with all permissions of the container.
type Call struct {
	Pod       *corev1.Pod
	Container string
	ID        identity.ContainerID // the instance in which a command runs
	Handler   *corev1.LifecycleHandler
	Timeout   time.Duration // the remaining grace period; must be positive
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

// Addresses returns the address at which the ports of a pod can be reached.
type Addresses interface {
	PodIP(ctx context.Context, pod *corev1.Pod) (string, error)
}

// Config of a Runner.
type Config struct {
	Executor  Executor // nil means that a command is ErrUnsupported
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

// Run runs a hook until it ends, within its timeout, unless it has been run for this instance before. If another caller is
// stopping the same instance, Run waits for that caller's run of the hook. A hook that failed is run again. Callers
// continue with the stop after any error, as kubelet does.
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
func clip(s string) string { return foreign.Shorten(s, 200) }
