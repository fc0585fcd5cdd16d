package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/node/report"
	"github.com/refit-project/refit/crr/queue"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
)

const (
	// planners is the number of pods processed in parallel. Processing waits for answers of the runtime and the API
	// server, never for a container, so a slow answer only delays one pod.
	planners = 64
	// minRetry and maxRetry limit the delay after an error, which doubles each time.
	minRetry = 10 * time.Millisecond
	maxRetry = 5 * time.Second
	// unseenRetry is the delay after the runtime has not answered.
	unseenRetry = time.Second
)

// Worker executes the requests of one node, one at a time for each pod.
type Worker struct {
	node        string
	runtimeName string
	options     crr.Options

	runtime     Runtime
	podAPI      PodAPI
	requestAPI  RequestAPI
	pods        cache.SharedIndexInformer
	requests    cache.SharedIndexInformer // indexed by indexPod
	latest      *latest
	clockOffset func() time.Duration

	acts    *acts
	slots   *slots
	running sync.WaitGroup // actions, and the goroutines that process the queue
	queue   workqueue.TypedRateLimitingInterface[identity.Pod]
	hooks   *hook.Runner
	synced  func()
	guard   *guard.Guard
	report  *report.Reporter
	logger  *slog.Logger
}

// New returns a Worker. It works while Run runs.
func New(config Config) (*Worker, error) {
	if err := config.Requests.AddIndexers(cache.Indexers{indexPod: indexByPod}); err != nil {
		return nil, fmt.Errorf("index requests by pod: %w", err)
	}
	w := &Worker{
		node: config.Node, runtimeName: config.RuntimeName, options: config.Options,
		runtime: config.Runtime, podAPI: config.PodAPI, requestAPI: config.RequestAPI,
		pods: config.Pods, requests: config.Requests, clockOffset: config.ClockOffset,
		latest: newLatest(config.Requests.GetIndexer()), acts: newActs(), slots: newSlots(config.MaxConcurrent),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[identity.Pod](minRetry, maxRetry)),
		hooks: config.Hooks, synced: config.Synced, guard: config.Guard, logger: config.Logger,
		report: report.New(report.Config{
			Node: config.Node, Events: config.Events, Registry: config.Registry, Tracer: config.Tracer, ClockOffset: config.ClockOffset,
		}),
	}
	for _, informer := range []cache.SharedIndexInformer{config.Requests, config.Pods} {
		if err := w.follow(informer); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Run executes requests until ctx ends, and returns when no action is in progress any more.
func (w *Worker) Run(ctx context.Context) error {
	defer w.running.Wait()
	w.running.Go(func() { w.requests.RunWithContext(ctx) })
	defer w.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), w.requests.HasSynced, w.pods.HasSynced) {
		return nil
	}
	w.synced()
	w.running.Go(func() { w.processAll(ctx) })
	<-ctx.Done()
	return nil
}

// processAll processes queued pods until the queue shuts down, up to planners at a time. Each pod gets a new goroutine,
// because long-lived goroutines would keep the large stacks of the last burst.
func (w *Worker) processAll(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(planners)
	for {
		key, shutdown := w.queue.Get()
		if shutdown {
			_ = group.Wait() // the goroutines return no errors
			return
		}
		group.Go(func() error {
			defer w.queue.Done(key)
			w.process(ctx, key)
			return nil
		})
	}
}

func (w *Worker) process(ctx context.Context, key identity.Pod) {
	err := w.guard.Do("requests", subject(key), func() error { return w.next(ctx, key) })
	w.slots.releaseKept(key)
	switch {
	case err == nil:
		w.queue.Forget(key)
	case ctx.Err() != nil:
	case apierrors.IsConflict(err):
		// The watch will deliver the change. The delay is for a slow watch.
		w.logger.Debug("the request has changed since it was read", "pod", key, "err", err)
		w.queue.AddRateLimited(key)
	default:
		w.logger.Warn("execute request, retrying", "pod", key, "err", err)
		w.queue.AddRateLimited(key)
	}
}

// next takes one step for the pod's first request, and writes the status of the waiting ones.
func (w *Worker) next(ctx context.Context, key identity.Pod) error {
	requests, err := w.latest.ofPod(key)
	if err != nil {
		return err
	}
	open := queue.Order(requests)
	if len(open) == 0 {
		return nil
	}
	errs := []error{w.step(ctx, key, open[0], w.nextDeadline(open))}
	for _, waiting := range open[1:] {
		if err := w.wait(ctx, key, waiting, open[0]); err != nil {
			errs = append(errs, fmt.Errorf("write to request %s that it waits: %w", waiting.Name, err))
		}
	}
	return errors.Join(errs...)
}

// nextDeadline returns the earliest deadline of a pod's requests, or zero if there is none. Deadlines that have passed
// only count for the first request, which is being carried out.
func (w *Worker) nextDeadline(queue []*crr.Request) time.Time {
	offset, now := w.clockOffset(), time.Now()
	next := crr.Deadline(queue[0], offset)
	for _, waiting := range queue[1:] {
		if deadline := crr.Deadline(waiting, offset); deadline.After(now) {
			next = crr.Earlier(next, deadline)
		}
	}
	return next
}

// wait writes into the status of a request that it waits for another request, or ends it if its deadline has passed.
func (w *Worker) wait(ctx context.Context, key identity.Pod, request, behind *crr.Request) error {
	now := time.Now()
	decision := crr.Wait(request, behind, crr.Options{}, w.clockOffset(), now)
	if request.Status.Phase == decision.Status.Phase {
		decision.Status = request.Status // which request it waits for is not worth a write each time
	}
	stored, err := w.write(ctx, request, decision.Status)
	if apierrors.IsNotFound(err) {
		return nil // deleted
	}
	if err != nil {
		return err
	}
	if crr.Completed(stored) {
		w.end(key, request, decision.Status, now)
		return nil
	}
	if !decision.Again.IsZero() {
		w.queue.AddAfter(key, decision.Again.Sub(now))
	}
	return nil
}

// step observes, plans, writes the status, and then performs the action. It does not wait for an unresponsive runtime
// beyond the deadline.
func (w *Worker) step(ctx context.Context, key identity.Pod, request *crr.Request, deadline time.Time) (err error) {
	planning, span := w.report.StartSpan(ctx, request, report.SpanPlan, time.Now())
	defer func() { report.EndSpan(span, err) }()
	observed, err := w.observe(planning, key, request, deadline)
	if err != nil {
		return err
	}
	now := time.Now()
	slot := w.slots.try(key)
	defer func() {
		if slot {
			w.slots.release()
		}
	}()
	observed.Later = !slot
	decision := crr.Plan(request, observed, w.options, now)
	span.SetAttributes(attribute.String("refit.plan.why", decision.Why))
	w.logger.Debug("planned", "pod", key, "request", request.Name, "why", decision.Why,
		"stop", decision.Stop != nil, "start", decision.Start != nil, "again", decision.Again)
	stored, err := w.write(planning, request, decision.Status)
	if apierrors.IsNotFound(err) {
		w.forget(request) // deleted
		return nil
	}
	if err != nil {
		return err
	}
	w.report.Starts(ctx, request, stored, observed, now)
	if crr.Completed(stored) {
		w.report.Request(ctx, request, decision.Status, now)
		w.end(key, request, decision.Status, now)
		return nil
	}
	if w.act(ctx, key, stored, observed.Pod, decision, slot) {
		slot = false // the action releases it
	}
	if !decision.Again.IsZero() {
		w.queue.AddAfter(key, decision.Again.Sub(now))
	}
	if observed.Unseen != "" {
		w.queue.AddAfter(key, unseenRetry)
	}
	return nil
}

// write stores the status if it differs. If the CRD drops the IDs of the instances to stop, it records them in an
// annotation. It never writes a completed request.
func (w *Worker) write(ctx context.Context, request *crr.Request, status crr.Status) (*crr.Request, error) {
	if !w.requestAPI.KeepsConditions() {
		status.Conditions = request.Status.Conditions
	}
	if crr.Completed(request) || equality.Semantic.DeepEqual(request.Status, status) {
		return request, nil
	}
	stored, err := w.requestAPI.WriteStatus(ctx, request, status)
	if err != nil {
		return nil, err
	}
	if instances, missing := record.Missing(stored, status); missing {
		stored, err = w.requestAPI.Annotate(ctx, stored, v1beta1.AnnotationInstances, instances)
		if err != nil {
			return nil, fmt.Errorf("record what is to be stopped: %w", err)
		}
	}
	w.latest.wrote(stored)
	return record.Apply(stored), nil
}

// end reports a request that has ended with this status, and enqueues the pod's next request.
func (w *Worker) end(key identity.Pod, request *crr.Request, status crr.Status, now time.Time) {
	w.acts.forget(request.UID)
	took := now.Add(w.clockOffset()).Sub(request.CreationTimestamp.Time)
	w.logger.Info("request ended", "pod", key, "request", request.Name, "message", status.Message, "took", took, report.RequestedBy(request))
	w.report.Ended(request, status, took)
	w.queue.Add(key)
}

// forget removes what is recorded about a request that no longer exists.
func (w *Worker) forget(request *crr.Request) {
	w.acts.forget(request.UID)
	w.latest.forget(request.UID)
}

// enqueuePod enqueues the pod if it has requests.
func (w *Worker) enqueuePod(pod *corev1.Pod) {
	key := identity.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
	if keys, err := w.requests.GetIndexer().IndexKeys(indexPod, podIndexKey(key)); err == nil && len(keys) > 0 {
		w.queue.Add(key)
	}
}

// enqueueAll enqueues all requests, because an event may have been missed. It removes what is recorded about other requests.
func (w *Worker) enqueueAll() {
	known := map[types.UID]bool{}
	for _, object := range w.requests.GetStore().List() {
		if request, ok := object.(*crr.Request); ok {
			known[request.UID] = true
			w.queue.Add(podOf(request))
		}
	}
	w.acts.keepOnly(known)
}
