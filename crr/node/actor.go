package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/engine"
	"github.com/refit-project/refit/crr/node/report"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
)

// refusal limits how soon a runtime that did not accept a call returns an error: it is down, or it refuses. An error
// after this time may mean that it has sent the stop signal.
const refusal = time.Second

// actor implements engine.Actor with the container runtime.
type actor struct {
	runtime Runtime
	podAPI  PodAPI
	hooks   *hook.Runner
	guard   *guard.Guard
	report  *report.Reporter
	logger  *slog.Logger
}

func newActor(config Config, reporter *report.Reporter) *actor {
	return &actor{
		runtime: config.Runtime, podAPI: config.PodAPI, hooks: config.Hooks, guard: config.Guard, report: reporter, logger: config.Logger,
	}
}

// Act implements engine.Actor.
func (a *actor) Act(ctx context.Context, action engine.Action) (result engine.Result) {
	defer a.report.Acting()()
	name, do := report.SpanStop, a.stop
	if action.Start != nil {
		name, do = report.SpanWake, a.start
	}
	ctx, span := a.report.StartSpan(ctx, action.Request, name, time.Now(), attribute.String("k8s.container.name", action.Container()))
	defer func() { report.EndSpan(span, result.Err) }()
	err := a.guard.Do("requests", subject(podOf(action.Request)), func() error { result = do(ctx, action); return nil })
	if err != nil {
		return engine.Result{Err: err}
	}
	return result
}

// stop stops one instance as kubelet would: preStop hook within the grace period, SIGTERM, SIGKILL.
func (a *actor) stop(ctx context.Context, action engine.Action) engine.Result {
	begun, stop, request := time.Now(), action.Stop, action.Request
	logger := a.logger.With("pod", request.Namespace+"/"+request.Spec.PodName, "container", stop.Container, "request", request.Name, requester.LogAttributes(request))
	logger.Info("stopping container", "id", stop.ID.String(), "grace", stop.Grace, "remove", len(stop.Remove))
	a.report.Killing(request, action.Pod, stop.Container)
	grace, result := a.preStop(ctx, logger, action)
	if result.Err != nil {
		return result
	}
	called := time.Now()
	if err := a.runtime.StopContainer(ctx, stop.ID.ID, grace); err != nil {
		failed := failure("stop container "+stop.Container, err)
		failed.Unbegun = time.Since(called) < refusal
		return failed
	}
	a.report.Stopped(time.Since(begun))
	logger.Info("stopped container", "id", stop.ID.String(), "took", time.Since(begun))
	return a.remove(ctx, request, stop.Container, stop.Remove)
}

// preStop runs the preStop hook of the instance to stop and returns the remaining grace period. It skips the hook of an
// instance that has ended while waiting for a slot: the next instance may have its address.
func (a *actor) preStop(ctx context.Context, logger *slog.Logger, action engine.Action) (time.Duration, engine.Result) {
	stop := action.Stop
	if stop.PreStop == nil || stop.Grace == 0 {
		return stop.Grace, engine.Result{}
	}
	began := time.Now()
	status, err := a.runtime.ContainerStatus(ctx, stop.ID.ID)
	switch {
	case errors.Is(err, cri.ErrNotFound), err == nil && status.State == identity.StateExited:
		return stop.Grace, engine.Result{}
	case err != nil:
		failed := failure("look at container "+stop.Container, err)
		failed.Unbegun = true
		return 0, failed
	}
	return action.PreStop(ctx, a.hooks, began, func(err error) {
		logger.Warn("preStop hook failed", "err", err)
		a.report.FailedPreStopHook(action.Pod, stop.Container, err)
	})
}

// start makes kubelet start a container that does not run.
func (a *actor) start(ctx context.Context, action engine.Action) engine.Result {
	request, start := action.Request, action.Start
	if len(start.Remove) > 0 {
		return a.remove(ctx, request, start.Container, start.Remove)
	}
	if !start.Touch {
		return engine.Result{}
	}
	a.logger.Info("touching the pod, so that kubelet syncs it", "pod", request.Namespace+"/"+request.Spec.PodName, "container", start.Container, "request", request.Name)
	if err := a.podAPI.Annotate(ctx, action.Pod, v1beta1.AnnotationNudge, touchValue(request, time.Now())); err != nil {
		return engine.Result{Err: fmt.Errorf("touch the pod: %w", err), Transient: true}
	}
	a.report.Touched()
	return engine.Result{Touched: true}
}

func (a *actor) remove(ctx context.Context, request *crr.Request, container string, ids []identity.ContainerID) engine.Result {
	if len(ids) > 0 {
		a.report.BackoffSkipped(request, container)
	}
	for _, id := range ids {
		// A removal kills a running container without a grace period, so check that the container has really stopped.
		status, err := a.runtime.ContainerStatus(ctx, id.ID)
		switch {
		case err == nil && status.State == identity.StateRunning:
			err = errStillRuns
		case err == nil:
			err = a.runtime.RemoveContainer(ctx, id.ID)
		}
		if err != nil && !errors.Is(err, cri.ErrNotFound) {
			return failure("remove container "+container, err)
		}
	}
	return engine.Result{}
}

// errStillRuns says that the runtime reported an instance as stopped and lists it as running.
var errStillRuns = errors.New("the runtime reports it as stopped and lists it as running")

func failure(doing string, err error) engine.Result {
	transient := errors.Is(err, cri.ErrUnavailable) || errors.Is(err, context.Canceled)
	return engine.Result{Err: fmt.Errorf("%s: %w", doing, err), Transient: transient}
}

// touchValue returns the value of the touch annotation. It differs each time, because otherwise the write would change
// nothing.
func touchValue(request *crr.Request, now time.Time) string {
	return fmt.Sprintf("%s %s", request.Name, now.UTC().Format(time.RFC3339Nano))
}
