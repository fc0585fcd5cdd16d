package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/engine"
	"github.com/refit-project/refit/crr/node/report"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/recheck"
)

const (
	// planners is the number of pods processed in parallel. Processing waits for answers of the runtime and the API
	// server, never for a container, so a slow answer only delays one pod.
	planners = 64
	// minRetry and maxRetry limit the delay after an error, which doubles each time.
	minRetry = 10 * time.Millisecond
	maxRetry = 5 * time.Second
)

// Worker executes the requests of one node, one at a time for each pod.
type Worker struct {
	runtimeName string
	pods        cache.SharedIndexInformer
	requests    cache.SharedIndexInformer
	followed    []cache.InformerSynced // the requests and pods of the first lists have been followed
	engine      *engine.Engine
	running     sync.WaitGroup // the goroutines that process the queue
	queue       workqueue.TypedRateLimitingInterface[identity.Pod]
	synced      func()
	guard       *guard.Guard
	logger      *slog.Logger
}

// New returns a Worker. It works while Run runs.
func New(config Config) (*Worker, error) {
	w := &Worker{
		runtimeName: config.RuntimeName, pods: config.Pods, requests: config.Requests, synced: config.Synced, guard: config.Guard, logger: config.Logger,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[identity.Pod](minRetry, maxRetry)),
	}
	reporter := report.New(report.Config{
		Node: config.Node, Events: config.Events, Registry: config.Registry, Tracer: config.Tracer, ClockOffset: config.ClockOffset,
	})
	w.engine = engine.New(engine.Config{
		Store: config.RequestAPI, Annotator: config.RequestAPI, Reporter: reporter,
		Observer: newObserver(config), Actor: newActor(config, reporter), Deleted: apierrors.IsNotFound, Changed: w.queue.Add,
		ClockOffset: config.ClockOffset, Options: config.Options, MaxConcurrent: config.MaxConcurrent, Logger: config.Logger,
	})
	err := config.Requests.AddIndexers(cache.Indexers{byPod: func(object any) ([]string, error) {
		request, ok := object.(*crr.Request)
		if !ok {
			return nil, fmt.Errorf("index requests by pod: unexpected %T", object)
		}
		return []string{podOf(request).String()}, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("index requests by pod: %w", err)
	}
	for _, informer := range []cache.SharedIndexInformer{config.Requests, config.Pods} {
		followed, err := w.follow(informer)
		if err != nil {
			return nil, err
		}
		w.followed = append(w.followed, followed)
	}
	return w, nil
}

// Run executes requests until ctx ends, and returns when no action is in progress any more.
func (w *Worker) Run(ctx context.Context) error {
	defer w.engine.Wait()
	defer w.running.Wait()
	w.running.Go(func() { w.requests.RunWithContext(ctx) })
	defer w.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), w.followed...) {
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
	var again recheck.At
	err := w.guard.Do("requests", subject(key), func() (err error) { again, err = w.engine.Next(ctx, key); return err })
	if !again.IsZero() {
		w.queue.AddAfter(key, time.Until(again.Time))
	}
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

// enqueuePod enqueues the pod if it has requests.
func (w *Worker) enqueuePod(pod *corev1.Pod) {
	key := identity.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
	if w.engine.HasRequests(key) {
		w.queue.Add(key)
	}
}

// enqueueAll enqueues all pods with requests, because an event may have been missed.
func (w *Worker) enqueueAll() {
	for _, key := range w.engine.Pods() {
		w.queue.Add(key)
	}
}
