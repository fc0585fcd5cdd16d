package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
)

// Config configures a restart.
type Config struct {
	API    client.WithWatch
	Output *console.Output
	// Made prints the created request or rollout.
	Made      table.Made
	Namespace string
	// Containers are the containers to restart, in this order; empty means the only container of the pods.
	Containers []string
	Reason     string
	// DrainSeconds is how long a pod is not ready before its first container is stopped; nil means no drain.
	DrainSeconds *int32
	// GracePeriodSeconds is the time between SIGTERM and SIGKILL; nil means the pod's own.
	GracePeriodSeconds *int64
	// MinReadySeconds is how long a pod must be ready after its restart to count as available; nil means minReadySeconds of
	// the workload. If only one pod is restarted, it is how long the containers must run.
	MinReadySeconds *int32
	Rollout         RolloutOptions
	// Wait waits for the end of the restart.
	Wait bool
	// Timeout limits the wait; zero means no limit. The restart continues afterwards.
	Timeout time.Duration
	DryRun  bool
}

// RolloutOptions are options for restarts of more than one pod.
type RolloutOptions struct {
	MaxUnavailable             *intstr.IntOrString
	Partition                  *intstr.IntOrString
	ContinueOnFailure          bool
	IgnorePodDisruptionBudgets bool
}

// Errors of a restart.
var (
	// ErrFailed means that the restart has ended without success.
	ErrFailed  = errors.New("the restart failed")
	errTimeout = fmt.Errorf("the restart is %w", console.ErrTimeout)
)

// Run restarts the targets. It checks all of them first. Then it restarts one after another and waits for each; without waiting it
// restarts all at once.
func Run(ctx context.Context, config Config, targets ...Target) error {
	ctx, cancel := config.limited(ctx)
	defer cancel()
	if len(targets) > 1 && !config.DryRun {
		if err := check(ctx, config, targets); err != nil {
			return console.Ended(ctx, err)
		}
	}
	for i, target := range targets {
		if i > 0 {
			if err := config.Made.Separate(); err != nil {
				return err
			}
		}
		if err := restart(ctx, config, target); err != nil {
			if i > 0 {
				err = console.Begun(err)
			}
			return withRest(console.Ended(ctx, err), targets[i+1:])
		}
	}
	return nil
}

// limited ends a context after the timeout.
func (c Config) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
}

// check tries the restart of each target without an effect.
func check(ctx context.Context, config Config, targets []Target) error {
	config.DryRun, config.Made, config.Output = true, table.Made{}, console.NewOutput(io.Discard, false)
	for _, target := range targets {
		if err := restart(ctx, config, target); err != nil {
			return fmt.Errorf("%s: %w; nothing has been restarted", target, err)
		}
	}
	return nil
}

func restart(ctx context.Context, config Config, target Target) error {
	config.Namespace = cmp.Or(target.Namespace, config.Namespace)
	r := &restarter{Config: config}
	if target.Pod != "" {
		return r.pod(ctx, target.Pod)
	}
	return r.rollout(ctx, target)
}

// withRest adds the targets that were not restarted to the error of the one before.
func withRest(err error, rest []Target) error {
	if len(rest) == 0 {
		return err
	}
	names := make([]string, len(rest))
	for i, target := range rest {
		names[i] = target.String()
	}
	return fmt.Errorf("%w\n  not begun: %s", err, strings.Join(names, ", "))
}

type restarter struct {
	Config
	selector labels.Selector // selects the pods of a rollout
	replicas int32           // number of pods of its workload
	// workloadMinReady is minReadySeconds of its workload.
	workloadMinReady int32
}

func (r *restarter) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.Namespace, Name: name}
}

func (r *restarter) annotations() map[string]string {
	if r.Reason == "" {
		return nil
	}
	return map[string]string{v1beta1.AnnotationReason: r.Reason}
}

// create creates an object, or only sends a dry run.
func (r *restarter) create(ctx context.Context, object client.Object) error {
	var options []client.CreateOption
	if r.DryRun {
		options = append(options, client.DryRunAll)
	}
	err := r.API.Create(ctx, object, options...)
	if err == nil && !r.DryRun {
		return r.Made.Begun(r.API.Scheme(), object)
	}
	return refused(noKind(err))
}

// noKind explains that the cluster does not have the CRD.
func noKind(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%w: this cluster does not have the CRD; install Refit first: %w", ErrFailed, err)
	}
	return err
}

// refused marks errors of requests that the API server does not allow.
func refused(err error) error {
	if apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return console.Refused(err)
	}
	return err
}

// only returns the only container of the pod, for commands that name none.
func only(pod *corev1.Pod) ([]string, error) {
	if len(pod.Spec.Containers) == 1 {
		return []string{pod.Spec.Containers[0].Name}, nil
	}
	names := make([]string, len(pod.Spec.Containers))
	for i, container := range pod.Spec.Containers {
		names[i] = container.Name
	}
	return nil, fmt.Errorf("%w: pod %s has the containers %s; name those to restart with --container", console.ErrUsage, pod.Name, strings.Join(names, ", "))
}

// interrupted returns the error of a wait that ends before the restart: what it waited for, and how to follow or stop
// the restart.
func (r *restarter) interrupted(ctx context.Context, last, follow, stop string) error {
	return fmt.Errorf("%w; the restart continues\n  last:      %s\n  follow it: %s\n  stop it:   %s", console.Cause(ctx), cmp.Or(last, "nothing"), follow, stop)
}
