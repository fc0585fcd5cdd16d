package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/node/report"
	"github.com/refit-project/refit/internal/identity"
)

// repeatDelay delays an action that has just succeeded and apparently had no effect.
const repeatDelay = time.Second

// refusal limits how soon a runtime that did not accept a call returns an error: it is down, or it refuses. An error
// after this time may mean that it has sent the stop signal.
const refusal = time.Second

// act performs a decision in its own goroutine, because a stop can take the whole grace period. The pod is processed
// again when the action ends. Without a slot, act only waits for one; after that the next step is planned again. It
// reports whether it has taken over the slot.
func (w *Worker) act(ctx context.Context, key identity.Pod, request *crr.Request, pod *corev1.Pod, decision crr.Decision, slot bool) bool {
	container, id := "", identity.ContainerID{}
	name, do := "", func(context.Context) outcome { return outcome{} }
	switch {
	case decision.Stop != nil:
		name, container, id = report.SpanStop, decision.Stop.Container, decision.Stop.ID
		do = func(ctx context.Context) outcome { return w.stop(ctx, request, pod, *decision.Stop) }
	case decision.Start != nil:
		name, container = report.SpanWake, decision.Start.Container
		do = func(ctx context.Context) outcome { return w.start(ctx, request, pod, *decision.Start) }
	default:
		return false
	}
	order := orderOf(decision)
	if wait := w.acts.repeatDelay(request.UID, container, order, time.Now()); wait > 0 {
		w.queue.AddAfter(key, wait)
		return false
	}
	w.acts.begin(request.UID, container, id)
	w.running.Go(func() {
		done := outcome{}
		if slot {
			done = w.runInSlot(request, func() outcome {
				acting, span := w.report.StartSpan(ctx, request, name, time.Now(), attribute.String("k8s.container.name", container))
				done := outcome{}
				err := w.guard.Do("requests", subject(key), func() error { done = do(acting); return nil })
				if err != nil {
					done = outcome{err: err}
				}
				report.EndSpan(span, done.err)
				return done
			})
			done.order = order
		} else if err := w.slots.wait(ctx); err != nil {
			done = outcome{err: err, transient: true, unbegun: true}
		} else {
			w.slots.keep(key)
		}
		if done.err != nil && ctx.Err() == nil {
			w.logger.Warn("action failed", "pod", key, "container", container, "request", request.Name, "err", done.err)
		}
		w.acts.end(request.UID, container, id, done)
		if w.latest.get(request) == nil {
			w.forget(request)
		}
		w.queue.Add(key)
	})
	return slot
}

// runInSlot runs do if the request is still wanted, and releases the slot.
func (w *Worker) runInSlot(request *crr.Request, do func() outcome) outcome {
	defer w.slots.release()
	if err := w.wanted(request); err != nil {
		return outcome{err: err, transient: true, unbegun: true}
	}
	defer w.report.Acting()()
	return do()
}

// wanted returns an error if the request must not be acted on any more, although an action was decided earlier.
func (w *Worker) wanted(request *crr.Request) error {
	return crr.MayAct(w.latest.get(request), w.clockOffset(), time.Now())
}

// orderOf returns a key that is equal for equal actions. A touch of the pod always has a new key.
func orderOf(decision crr.Decision) string {
	switch {
	case decision.Stop != nil:
		return "stop " + decision.Stop.ID.String()
	case decision.Start != nil && len(decision.Start.Remove) > 0:
		return fmt.Sprint("remove ", decision.Start.Remove)
	default:
		return ""
	}
}

// stop stops one instance as kubelet would: preStop hook within the grace period, SIGTERM, SIGKILL.
func (w *Worker) stop(ctx context.Context, request *crr.Request, pod *corev1.Pod, stop crr.Stop) outcome {
	begun := time.Now()
	logger := w.logger.With("pod", pod.Namespace+"/"+pod.Name, "container", stop.Container, "request", request.Name, report.RequestedBy(request))
	logger.Info("stopping container", "id", stop.ID.String(), "grace", stop.Grace, "remove", len(stop.Remove))
	w.report.Killing(request, pod, stop.Container)
	grace, done := w.preStop(ctx, logger, request, pod, stop)
	if done.err != nil {
		return done
	}
	called := time.Now()
	if err := w.runtime.StopContainer(ctx, stop.ID.ID, grace); err != nil {
		failed := failure("stop container "+stop.Container, err)
		failed.unbegun = time.Since(called) < refusal
		return failed
	}
	w.report.Stopped(time.Since(begun))
	logger.Info("stopped container", "id", stop.ID.String(), "took", time.Since(begun))
	return w.remove(ctx, request, stop.Container, stop.Remove)
}

// start makes kubelet start a container that does not run.
func (w *Worker) start(ctx context.Context, request *crr.Request, pod *corev1.Pod, start crr.Start) outcome {
	if len(start.Remove) > 0 {
		return w.remove(ctx, request, start.Container, start.Remove)
	}
	if !start.Touch {
		return outcome{}
	}
	w.logger.Info("touching the pod, so that kubelet syncs it", "pod", pod.Namespace+"/"+pod.Name, "container", start.Container, "request", request.Name)
	if err := w.podAPI.Annotate(ctx, pod, v1beta1.AnnotationNudge, touchValue(request, time.Now())); err != nil {
		return outcome{err: fmt.Errorf("touch the pod: %w", err), transient: true}
	}
	w.report.Touched()
	return outcome{nudged: true}
}

func (w *Worker) remove(ctx context.Context, request *crr.Request, container string, ids []identity.ContainerID) outcome {
	if len(ids) > 0 {
		w.report.BackoffSkipped(request, container)
	}
	for _, id := range ids {
		// A removal kills a running container without a grace period, so check that the container has really stopped.
		status, err := w.runtime.ContainerStatus(ctx, id.ID)
		switch {
		case err == nil && status.State == identity.StateRunning:
			err = errStillRuns
		case err == nil:
			err = w.runtime.RemoveContainer(ctx, id.ID)
		}
		if err != nil && !errors.Is(err, cri.ErrNotFound) {
			return failure("remove container "+container, err)
		}
	}
	return outcome{}
}

// errStillRuns says that the runtime reported an instance as stopped and lists it as running.
var errStillRuns = errors.New("the runtime reports it as stopped and lists it as running")

func failure(doing string, err error) outcome {
	transient := errors.Is(err, cri.ErrUnavailable) || errors.Is(err, context.Canceled)
	return outcome{err: fmt.Errorf("%s: %w", doing, err), transient: transient}
}
