package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/daemon/prober"
	"github.com/refit-project/refit/identity"
)

// planners work in parallel. None of them waits for a container; they only wait for answers of
// the runtime and the API server, so that one slow answer holds up one pod.
const planners = 64

// worker carries out the requests of one node, one at a time for each pod.
type worker struct {
	node        string
	runtimeName string // the scheme of container IDs
	options     crr.Options

	runtime    Runtime
	podAPI     PodAPI
	requestAPI RequestAPI
	events     Teller
	pods       cache.Store
	requests   cache.Indexer       // by indexPod
	newest     cache.MutationCache // requests, with our own writes the watch has not brought yet
	written    sync.Map            // version of our latest write, by the request's UID: no news when the watch brings it

	prober      *prober.Manager // nil in tests of requests alone
	acts        *acts
	slots       chan struct{} // acts under way
	worked      chan struct{} // for releaseMemory
	group       *errgroup.Group
	queue       workqueue.TypedRateLimitingInterface[identity.Pod]
	hooks       *http.Client
	metrics     *metrics
	clockOffset func() time.Duration
	logger      *slog.Logger
}

// indexPod files requests under the pod they were admitted for.
const indexPod = "pod"

// podOf is the pod of a request. The UID is that of admission, so that requests for a pod and for the next of
// its name, as a StatefulSet makes it, do not meet.
func podOf(request *crr.Request) identity.Pod {
	return identity.Pod{Namespace: request.Namespace, Name: request.Spec.PodName, UID: request.Labels[v1beta1.LabelPodUID]}
}

func podIndexKey(key identity.Pod) string { return key.Namespace + "/" + key.Name + "/" + key.UID }

func indexByPod(object any) ([]string, error) {
	request, ok := object.(*crr.Request)
	if !ok {
		return nil, nil
	}
	return []string{podIndexKey(podOf(request))}, nil
}

// run plans until the queue is shut down.
func (w *worker) run(ctx context.Context) error {
	for range planners {
		w.group.Go(func() error {
			for {
				key, shutdown := w.queue.Get()
				if shutdown {
					return nil
				}
				w.process(ctx, key)
				w.queue.Done(key)
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	return nil
}

func (w *worker) process(ctx context.Context, key identity.Pod) {
	err := w.next(ctx, key)
	switch {
	case err == nil:
		w.queue.Forget(key)
	case ctx.Err() != nil:
	case apierrors.IsConflict(err):
		// The watch brings the change; the delay is for a watch that is slow.
		w.logger.Debug("request changed meanwhile", "pod", key, "err", err)
		w.queue.AddRateLimited(key)
	default:
		w.logger.Warn("cannot go on, trying again", "pod", key, "err", err)
		w.queue.AddRateLimited(key)
	}
}

// next takes one step for the pod's first request and tells the others that they wait.
func (w *worker) next(ctx context.Context, key identity.Pod) error {
	objects, err := w.newest.ByIndex(indexPod, podIndexKey(key))
	if err != nil {
		return fmt.Errorf("look up requests: %w", err)
	}
	var requests []*crr.Request
	for _, object := range objects {
		requests = append(requests, object.(*crr.Request))
	}
	queue := crr.Queue(requests)
	if len(queue) == 0 {
		return nil
	}
	for _, waiting := range queue[1:] {
		if err := w.wait(ctx, key, waiting, queue[0]); err != nil {
			return err
		}
	}
	return w.step(ctx, key, queue[0])
}

// wait tells a request that another is first, or that its deadline has passed meanwhile.
func (w *worker) wait(ctx context.Context, key identity.Pod, request, behind *crr.Request) error {
	now := time.Now()
	decision := crr.Wait(request, behind, w.clockOffset(), now)
	if request.Status.Phase == decision.Status.Phase {
		decision.Status = request.Status // whom it waits for is not worth a write each time
	}
	stored, err := w.write(ctx, request, decision.Status)
	if apierrors.IsNotFound(err) {
		return nil // deleted
	}
	if err != nil {
		return err
	}
	if crr.Completed(stored) {
		w.end(key, stored, now)
		return nil
	}
	if !decision.Again.IsZero() {
		w.queue.AddAfter(key, decision.Again.Sub(now))
	}
	return nil
}

// step observes, plans, writes what was decided, and only then acts.
func (w *worker) step(ctx context.Context, key identity.Pod, request *crr.Request) error {
	observed, err := w.observe(ctx, key, request)
	if err != nil {
		return err
	}
	now := time.Now()
	decision := crr.Plan(request, observed, w.options, now)
	w.logger.Debug("planned", "pod", key, "request", request.Name, "why", decision.Why,
		"stop", decision.Stop != nil, "start", decision.Start != nil, "again", decision.Again)
	stored, err := w.write(ctx, request, decision.Status)
	if apierrors.IsNotFound(err) {
		w.acts.forget(request.UID) // deleted
		w.written.Delete(request.UID)
		return nil
	}
	if err != nil {
		return err
	}
	if crr.Completed(stored) {
		w.end(key, stored, now)
		return nil
	}
	w.act(ctx, key, stored, observed.Pod, decision)
	if !decision.Again.IsZero() {
		w.queue.AddAfter(key, decision.Again.Sub(now))
	}
	if observed.Unseen != "" {
		w.queue.AddAfter(key, relookUnseen)
	}
	return nil
}

// relookUnseen is how soon a runtime that does not answer is asked again.
const relookUnseen = time.Second

// write stores a status that differs. A completed request is never written.
func (w *worker) write(ctx context.Context, request *crr.Request, status crr.Status) (*crr.Request, error) {
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
	w.newest.Mutation(stored)
	w.written.Store(stored.UID, stored.ResourceVersion)
	return stored, nil
}

// end tells of a request that has ended and turns to the pod's next.
func (w *worker) end(key identity.Pod, request *crr.Request, now time.Time) {
	w.acts.forget(request.UID)
	w.written.Delete(request.UID)
	took := now.Add(w.clockOffset()).Sub(request.CreationTimestamp.Time)
	w.logger.Info("request ended", "pod", key, "request", request.Name, "message", request.Status.Message, "took", took)
	w.metrics.ended(request.Status, took)
	w.tell(ended(request, request.Status))
	w.noteWork()
	w.queue.Add(key)
}

// wakePod looks at a pod's requests again, if it has any.
func (w *worker) wakePod(pod *corev1.Pod) {
	key := identity.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
	if keys, err := w.requests.IndexKeys(indexPod, podIndexKey(key)); err == nil && len(keys) > 0 {
		w.queue.Add(key)
	}
}

// wakeAll looks at all requests again: something may have been missed.
func (w *worker) wakeAll() {
	for _, object := range w.requests.List() {
		if request, ok := object.(*crr.Request); ok {
			w.queue.Add(podOf(request))
		}
	}
}
