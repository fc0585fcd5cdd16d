package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/queue"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/recheck"
)

// unseenRetry is the delay until the next look at containers that could not be observed.
const unseenRetry = time.Second

// errNotRecorded says that the API server has not stored the instance that an action is about.
var errNotRecorded = errors.New("the API server has not stored the ID of the container, so nothing is done to it")

// Next takes one step for a pod's first request, and writes the status of the requests that wait for it. It returns when
// to call it again even without a change. It must not be called twice at the same time for one pod.
func (e *Engine) Next(ctx context.Context, pod identity.Pod) (recheck.At, error) {
	defer e.slots.releaseKept(pod)
	open := queue.Order(e.ofPod(pod))
	if len(open) == 0 {
		return recheck.At{}, nil
	}
	again, err := e.step(ctx, pod, open[0], e.nextDeadline(open))
	due, waiting := e.waitInLine(ctx, pod, open)
	return again.Or(due.Time), errors.Join(err, waiting)
}

// waitInLine writes the status of the requests that wait for the first one of a queue. Each names the one in front of it.
func (e *Engine) waitInLine(ctx context.Context, pod identity.Pod, open []*crr.Request) (again recheck.At, err error) {
	front := open[0]
	for _, waiting := range open[1:] {
		due, failed := e.wait(ctx, pod, waiting, front)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("update the status of request %s, which waits: %w", waiting.Name, failed))
		}
		again = again.Or(due.Time)
		if stored := e.get(waiting.UID); stored != nil && !crr.Completed(stored) {
			front = stored
		}
	}
	return again, err
}

// nextDeadline returns the earliest deadline of a pod's requests, or zero if there is none. Deadlines that have passed
// only count for the first request, which is being carried out.
func (e *Engine) nextDeadline(queue []*crr.Request) time.Time {
	offset, now := e.ClockOffset(), time.Now()
	next := recheck.On(crr.Deadline(queue[0], offset))
	for _, waiting := range queue[1:] {
		if deadline := crr.Deadline(waiting, offset); deadline.After(now) {
			next = next.Or(deadline)
		}
	}
	return next.Time
}

// wait writes into the status of a request that it waits for the request directly in front of it, or ends it if its
// deadline has passed. The request in front seldom changes, so that a queue costs one write for each request in it.
func (e *Engine) wait(ctx context.Context, pod identity.Pod, request, front *crr.Request) (recheck.At, error) {
	now := time.Now()
	decision := crr.Wait(request, front, e.Options, e.ClockOffset(), now)
	stored, err := e.write(ctx, request, decision.Status)
	if stored == nil || !crr.Completed(stored) {
		return decision.Again, err
	}
	e.end(pod, request, decision.Status, now)
	return recheck.On(now), nil
}

// step observes, decides, stores the status, and then begins the action. It does not wait for an unresponsive runtime
// beyond the deadline.
func (e *Engine) step(ctx context.Context, pod identity.Pod, request *crr.Request, deadline time.Time) (again recheck.At, err error) {
	var decision crr.Decision
	planning, ended := e.Reporter.Step(ctx, request)
	defer func() { ended(decision, err) }()
	request = e.recorded(request)
	observed, known, err := e.observe(planning, pod, request, deadline)
	if err != nil {
		return again, err
	}
	now := time.Now()
	slot := e.slots.try(pod)
	defer func() {
		if slot {
			e.slots.release(pod)
		}
	}()
	observed.Later = !slot
	decision = crr.Plan(request, observed, e.Options, now)
	e.Logger.Debug("planned", "pod", pod, "request", request.Name, "why", decision.Why,
		"stop", decision.Stop != nil, "start", decision.Start != nil, "again", decision.Again.Time)
	stored, err := e.write(planning, request, decision.Status)
	switch {
	case err != nil:
		return again, err
	case stored == nil: // the pod's next request is the first one now
		return recheck.On(now), nil
	}
	e.Reporter.Stored(ctx, request, decision.Status, observed, now)
	if crr.Completed(stored) {
		e.end(pod, request, decision.Status, now)
		return recheck.On(now), nil
	}
	if observed.Unseen != "" {
		decision.Again = decision.Again.Or(now.Add(unseenRetry))
	}
	action := newAction(stored, observed.Pod, decision)
	if action == nil {
		return decision.Again, nil
	}
	if !action.recorded() {
		return again, fmt.Errorf("container %s: %w", action.Container(), errNotRecorded)
	}
	if delay := known.repeatDelay(*action, now); delay > 0 {
		return decision.Again.Or(now.Add(delay)), nil
	}
	e.begin(ctx, pod, *action, slot)
	slot = false // the action releases it
	return decision.Again, nil
}

// observe reads the pod of a request and its containers. If there is a deadline, it reads the containers until then.
// What is known about actions is read first: an action that ends meanwhile must not look older than the containers.
func (e *Engine) observe(ctx context.Context, key identity.Pod, request *crr.Request, deadline time.Time) (crr.Observation, progress, error) {
	known, stopping := e.take(request.UID, time.Now())
	pod, err := e.Observer.Pod(ctx, key)
	if err != nil {
		return crr.Observation{}, known, fmt.Errorf("read the pod: %w", err)
	}
	var observed crr.Observation
	if pod != nil {
		if !deadline.IsZero() {
			bounded, cancel := context.WithDeadline(ctx, deadline)
			defer cancel()
			ctx = bounded
		}
		observed, err = e.Observer.Containers(ctx, request, pod, func(id identity.ContainerID) bool { return stopping[id] })
		if err != nil {
			e.Logger.Warn("containers cannot be seen", "pod", key, "request", request.Name, "err", err)
			observed.Unseen = "containers cannot be seen: " + err.Error()
		}
	}
	observed.Pod, observed.ClockOffset = pod, e.ClockOffset()
	observed.Actions, observed.TakenAt, observed.DropsIDs = maps.Clone(known.states), known.taken, known.dropsIDs
	// A stop that is in progress for an earlier request counts for this request too.
	for name, instances := range observed.Instances {
		if len(instances) > 0 && stopping[instances[0].ID] {
			action := observed.Actions[name]
			action.Running = true
			observed.Actions[name] = action
		}
	}
	return observed, known, nil
}

// recorded returns the request with the IDs of the instances to stop in its container states, also if the CRD has no
// field for them.
func (e *Engine) recorded(request *crr.Request) *crr.Request {
	if e.Annotator != nil {
		return record.Apply(request)
	}
	begun := record.Begun(request)
	// A process that has just started has written nothing yet. It notices dropped IDs by what is missing from the stored
	// status.
	if !equality.Semantic.DeepEqual(begun.Status, request.Status) {
		e.droppedIDs(request.UID)
	}
	return begun
}

// write stores the status if it differs, with the IDs of the instances to stop. It never writes a completed request. It
// returns nil if the request has been deleted.
func (e *Engine) write(ctx context.Context, request *crr.Request, status crr.Status) (*crr.Request, error) {
	if !e.Store.KeepsConditions() {
		status.Conditions = request.Status.Conditions
	}
	if crr.Completed(request) || equality.Semantic.DeepEqual(request.Status, status) {
		return request, nil
	}
	stored, err := e.Store.WriteStatus(ctx, request, status)
	if err == nil {
		stored, err = e.record(ctx, stored, status)
	}
	switch {
	case err != nil && e.Deleted(err):
		e.Remove(request)
		return nil, nil //nolint:nilnil // a deleted request is a result, not an error
	case err != nil:
		return nil, err
	}
	e.wrote(stored)
	return e.recorded(stored), nil
}

// record records the instances to stop in an annotation if the API server has dropped them from the status.
func (e *Engine) record(ctx context.Context, stored *crr.Request, status crr.Status) (*crr.Request, error) {
	instances, missing := record.Missing(stored, status)
	if !missing {
		return stored, nil
	}
	if e.Annotator == nil {
		e.droppedIDs(stored.UID)
		return stored, nil
	}
	stored, err := e.Annotator.Annotate(ctx, stored, v1beta1.AnnotationInstances, instances)
	if err != nil {
		return nil, fmt.Errorf("record what is to be stopped: %w", err)
	}
	return stored, nil
}

// end reports a request that has ended with this status.
func (e *Engine) end(pod identity.Pod, request *crr.Request, status crr.Status, now time.Time) {
	e.finish(request.UID)
	took := now.Add(e.ClockOffset()).Sub(request.CreationTimestamp.Time)
	e.Logger.Info("request ended", "pod", pod, "request", request.Name, "message", status.Message, "took", took, requester.LogAttributes(request))
	e.Reporter.Ended(request, status, took)
}
