package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/kubelet"
)

// Config configures a Reporter. Every field is required.
type Config struct {
	// RuntimeName is the scheme of container IDs.
	RuntimeName string
	Runtime     Runtime
	// Pods caches the pods of the node. The caller runs the informer.
	Pods cache.SharedIndexInformer
	// Wants selects the pods to report about, for example kube.UpdatedInPlace.
	Wants  func(pod *corev1.Pod) bool
	API    API
	Hooks  Hooks
	Events EventRecorder
	Guard  *guard.Guard // catches panics while one pod is handled; may be nil
	Logger *slog.Logger
}

// Runtime reads and stops containers; *cri.Client implements it.
type Runtime interface {
	ContainerStatus(ctx context.Context, id string) (cri.ContainerStatus, error)
	Environment(ctx context.Context, id string) (map[string]string, error)
	StopContainer(ctx context.Context, id string, grace time.Duration) error
}

// API writes one annotation of a pod; *kube.Client implements it.
type API interface {
	Annotate(ctx context.Context, pod *corev1.Pod, key, value string) error
}

// Hooks runs preStop hooks; *hook.Runner implements it.
type Hooks interface {
	Run(ctx context.Context, call hook.Call) error
}

// EventRecorder records Kubernetes Events; *kube.Events implements it.
type EventRecorder interface {
	Event(about corev1.ObjectReference, eventType, reason, message string)
}

const (
	// settle is how long to wait after a change of a pod for further changes.
	settle = time.Second
	// kubeletDelay is how long no container is stopped after the last change of an input of containers. Kubelet
	// receives a change of labels at the same time as we do, but a sync that began before may wait for up to a second
	// until kubelet has listed the containers again, and would start the next instance with the old environment.
	kubeletDelay = 1500 * time.Millisecond
	firstRetry   = time.Second
	lastRetry    = time.Minute
)

// Reporter reports about the node's pods. Create it with New.
type Reporter struct {
	config Config
	queue  workqueue.TypedRateLimitingInterface[string]
	work   sync.WaitGroup // stops in progress

	mu       sync.Mutex
	known    map[string]instances // by pod
	changed  map[string]time.Time // by pod: the last change of an input of containers
	stopping map[string]bool      // container IDs, until the pod's status has other ones
}

// New returns a Reporter. It works while Run runs.
func New(config Config) (*Reporter, error) {
	r := &Reporter{
		config: config, known: map[string]instances{}, changed: map[string]time.Time{}, stopping: map[string]bool{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)),
	}
	_, err := config.Pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { r.enqueue(nil, object) }, UpdateFunc: r.enqueue, DeleteFunc: func(object any) { r.enqueue(nil, object) },
	})
	if err != nil {
		return nil, fmt.Errorf("follow pods: %w", err)
	}
	return r, nil
}

// enqueue enqueues a pod that was added, updated or deleted.
func (r *Reporter) enqueue(before, object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok || !r.config.Wants(pod) {
		return
	}
	key := pod.Namespace + "/" + pod.Name
	was, ok := before.(*corev1.Pod)
	if !ok || changes(was, pod) {
		r.mu.Lock()
		r.changed[key] = time.Now()
		r.mu.Unlock()
	}
	if ok && updating(pod) && !updating(was) {
		r.queue.Add(key) // the pod is not ready because of the update: do not wait
		return
	}
	r.queue.AddAfter(key, settle)
}

// Run works until ctx ends, and returns when its goroutines have ended.
func (r *Reporter) Run(ctx context.Context) error {
	defer r.work.Wait()
	end := context.AfterFunc(ctx, r.queue.ShutDown)
	defer end()
	for {
		key, shutdown := r.queue.Get()
		if shutdown {
			return nil
		}
		if err := r.config.Guard.Do("containers", podNamed(key), func() error { return r.sync(ctx, key) }); err != nil && ctx.Err() == nil {
			r.config.Logger.Warn("cannot report the containers of a pod yet, retrying", "pod", key, "err", err)
			r.queue.AddRateLimited(key)
		} else {
			r.queue.Forget(key)
		}
		r.queue.Done(key)
	}
}

// podNamed returns a pod as the subject of a guard.
func podNamed(key string) guard.Subject {
	namespace, name, _ := strings.Cut(key, "/")
	return guard.Named(guard.Object{Kind: "Pod", Namespace: namespace, Name: name})
}

func (r *Reporter) sync(ctx context.Context, key string) error {
	object, found, err := r.config.Pods.GetStore().GetByKey(key)
	pod, isPod := object.(*corev1.Pod)
	if err != nil || !found || !isPod || !r.config.Wants(pod) || pod.DeletionTimestamp != nil {
		r.forget(key)
		return err
	}
	known, err := r.look(ctx, key, pod)
	if err != nil {
		return err
	}
	value, err := report(pod, known)
	if err != nil {
		return err
	}
	if value != "" && value != pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta] {
		if err := r.config.API.Annotate(ctx, pod, v1beta1.AnnotationRuntimeContainersMeta, value); err != nil {
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the pod is gone, or another one has its name
				return nil
			}
			return err
		}
	}
	list := stops(pod, known)
	r.mu.Lock()
	early := time.Until(r.changed[key].Add(kubeletDelay))
	r.mu.Unlock()
	if len(list) > 0 && early > 0 {
		r.queue.AddAfter(key, early)
		return nil
	}
	for _, status := range list {
		r.stop(ctx, key, pod, status)
	}
	return nil
}

func (r *Reporter) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.known[key] {
		delete(r.stopping, id)
	}
	delete(r.known, key)
	delete(r.changed, key)
}

// look queries the runtime about instances that are not known yet. The hash and the environment of an instance never
// change.
func (r *Reporter) look(ctx context.Context, key string, pod *corev1.Pod) (instances, error) {
	r.mu.Lock()
	before := r.known[key]
	r.mu.Unlock()
	now := instances{}
	var errs []error
	for _, status := range current(pod) {
		is, ok := before[status.ContainerID]
		if !ok {
			var err error
			is, err = r.ask(ctx, pod, status)
			if errors.Is(err, cri.ErrNotFound) {
				continue // the pod's status lags behind
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("container %s: %w", status.Name, err))
				continue
			}
		}
		now[status.ContainerID] = is
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range before {
		if _, ok := now[id]; !ok {
			delete(r.stopping, id)
		}
	}
	r.known[key] = now
	return now, errors.Join(errs...)
}

func (r *Reporter) ask(ctx context.Context, pod *corev1.Pod, status *corev1.ContainerStatus) (instance, error) {
	id, ok := strings.CutPrefix(status.ContainerID, r.config.RuntimeName+"://")
	if !ok {
		return instance{}, fmt.Errorf("container ID %q is not of runtime %s: %w", status.ContainerID, r.config.RuntimeName, cri.ErrNotFound)
	}
	seen, err := r.config.Runtime.ContainerStatus(ctx, id)
	if err != nil {
		return instance{}, err
	}
	if !seen.BelongsTo(kubelet.RuntimePodUID(pod), pod.Namespace, pod.Name, status.Name) { // it may be stopped, and its hook run
		return instance{}, fmt.Errorf("container ID %q is not of this container: %w", status.ContainerID, cri.ErrNotFound)
	}
	is := instance{hash: seen.Hash, image: seen.Image}
	envs := reported.MetadataEnvs(kubelet.ContainerIn(pod.Spec.Containers, status.Name))
	if len(envs) == 0 {
		return is, nil
	}
	all, err := r.config.Runtime.Environment(ctx, id)
	if errors.Is(err, cri.ErrUnsupported) {
		r.config.Logger.Warn("the container runtime does not report the environment of containers: updates of it cannot be seen", "err", err)
		is.noEnv = true
		return is, nil
	}
	if err != nil {
		return instance{}, err
	}
	is.env = map[string]string{}
	for _, env := range envs {
		is.env[env.Name] = all[env.Name]
	}
	return is, nil
}
