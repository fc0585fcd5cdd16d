package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/internal/identity"
)

// world has an API server with one request for container app of one pod, the pod's instances, and a kubelet that starts
// the next one. It goes on while processes with engines come and go.
type world struct {
	mu        sync.Mutex
	request   *crr.Request // nil once it is deleted
	first     *crr.Request // the version at creation, which a watch may deliver late
	pod       *corev1.Pod
	instances []crr.Instance // newest first
	count     int            // of instances created
	stopped   []string       // the instances that were signalled, each once
	faults    []string       // what must never happen

	sidecar    bool // the processes are sidecars, otherwise daemons
	dropsIDs   bool // the CRD is OpenKruise's
	drops      bool // the API server stores no trace of an instance at all
	conditions bool
}

var key = identity.Pod{Namespace: "shop", Name: "web", UID: "uid-web"}

func instanceID(n int) identity.ContainerID {
	return identity.ContainerID{Runtime: "containerd", ID: fmt.Sprintf("%064d", n)}
}

func newWorld() *world {
	w := &world{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}, conditions: true}
	w.pod.Spec.RestartPolicy, w.pod.Status.Phase = corev1.RestartPolicyAlways, corev1.PodRunning
	w.pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	w.start()
	w.request = &crr.Request{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "again", UID: "uid-again", ResourceVersion: "1", CreationTimestamp: metav1.Now(),
		Labels: map[string]string{v1beta1.LabelPodUID: "uid-web"}, Annotations: map[string]string{},
	}}
	w.request.Spec.PodName, w.request.Spec.Strategy = "web", &v1beta1.ContainerRecreateRequestStrategy{}
	w.request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{
		{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: instanceID(1).String()}},
	}
	w.first = w.request.DeepCopy()
	return w
}

// change changes the request before anything has read it.
func (w *world) change(change func(*crr.Request)) {
	change(w.request)
	w.first = w.request.DeepCopy()
}

// start is kubelet starting an instance and reporting it as ready.
func (w *world) start() {
	w.count++
	now := time.Now()
	instance := crr.Instance{ID: instanceID(w.count), State: identity.StateRunning, StartedAt: now, RestartCount: int32(w.count - 1)}
	w.instances = append([]crr.Instance{instance}, w.instances...)
	w.pod = w.pod.DeepCopy()
	w.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: instance.ID.String(), Ready: true, RestartCount: instance.RestartCount,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}},
	}}
}

// exit ends the running instance; kubelet starts the next one two seconds later.
func (w *world) exit() {
	if w.instances[0].State != identity.StateRunning {
		return
	}
	w.instances[0].State, w.instances[0].FinishedAt = identity.StateExited, time.Now()
	time.AfterFunc(2*time.Second, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.start()
	})
}

// signal begins the stop of an instance, which exits a second later whatever becomes of the process that stops it.
func (w *world) signal(id identity.ContainerID) {
	if state, _ := crr.RecreateStateOf(record.Begun(w.request), "app"); state.ContainerID != id.String() {
		w.faults = append(w.faults, fmt.Sprintf("stops %s while the stored request names %q", id, state.ContainerID))
	}
	if slices.Contains(w.stopped, id.String()) {
		return
	}
	w.stopped = append(w.stopped, id.String())
	time.AfterFunc(time.Second, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.instances) > 0 && w.instances[0].ID == id {
			w.exit()
		}
	})
}

// write changes the stored request like the API server.
func (w *world) write(request *crr.Request, change func(*crr.Request)) (*crr.Request, error) {
	resource := schema.GroupResource{Resource: "containerrecreaterequests"}
	switch {
	case w.request == nil:
		return nil, apierrors.NewNotFound(resource, request.Name)
	case w.request.ResourceVersion != request.ResourceVersion:
		return nil, apierrors.NewConflict(resource, request.Name, errors.New("changed"))
	}
	stored := w.request.DeepCopy()
	change(stored)
	for i := range stored.Status.ContainerRecreateStates {
		if w.dropsIDs || w.drops {
			stored.Status.ContainerRecreateStates[i].ContainerID, stored.Status.ContainerRecreateStates[i].StopBegan = "", nil
		}
	}
	var version int
	_, _ = fmt.Sscan(w.request.ResourceVersion, &version)
	stored.ResourceVersion = fmt.Sprint(version + 1)
	w.request = stored
	return stored.DeepCopy(), nil
}

// process is a daemon or a sidecar. All that it does outside of itself passes through call.
type process struct {
	*world
	calls   int
	fault   string
	at      int // the call that the fault hits; zero: none
	crashed bool
	changed chan struct{}
}

var errCrashed = errors.New("the process has crashed")

// The faults of a call.
const (
	crashBefore = "crash before the call"
	crashAfter  = "crash after the call"
	fails       = "the call fails"
	loses       = "the answer is lost"
)

// call does something outside of the process.
func (p *process) call(do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crashed {
		return errCrashed
	}
	if p.calls++; p.calls != p.at {
		return do()
	}
	p.crashed = p.fault == crashBefore || p.fault == crashAfter
	if p.fault == crashAfter || p.fault == loses {
		_ = do() // nobody learns of an error
	}
	return errors.New(p.fault)
}

func (p *process) Pod(context.Context, identity.Pod) (pod *corev1.Pod, err error) {
	err = p.call(func() error { pod = p.pod.DeepCopy(); return nil })
	return pod, err
}

func (p *process) Containers(context.Context, *crr.Request, *corev1.Pod, func(identity.ContainerID) bool) (observed crr.Observation, err error) {
	err = p.call(func() error {
		observed = crr.Observation{Runtime: "containerd", Instances: map[string][]crr.Instance{"app": slices.Clone(p.instances)}}
		return nil
	})
	return observed, err
}

func (p *process) KeepsConditions() bool { return p.conditions }

func (p *process) WriteStatus(_ context.Context, request *crr.Request, status crr.Status) (stored *crr.Request, err error) {
	err = p.call(func() (err error) {
		stored, err = p.write(request, func(r *crr.Request) { r.Status = *status.DeepCopy() })
		return err
	})
	return stored, err
}

func (p *process) Annotate(_ context.Context, request *crr.Request, key, value string) (stored *crr.Request, err error) {
	err = p.call(func() (err error) {
		stored, err = p.write(request, func(r *crr.Request) {
			if !p.drops {
				r.Annotations[key] = value
			}
		})
		return err
	})
	return stored, err
}

// Act signals an instance and waits for its exit, or removes instances.
func (p *process) Act(ctx context.Context, action Action) Result {
	var remove []identity.ContainerID
	if stop := action.Stop; stop != nil {
		if err := p.call(func() error { p.signal(stop.ID); return nil }); err != nil {
			return Result{Err: err}
		}
		select {
		case <-ctx.Done():
			return Result{Err: ctx.Err(), Transient: true}
		case <-time.After(1500 * time.Millisecond):
		}
		remove = stop.Remove
	} else {
		remove = action.Start.Remove
	}
	err := p.call(func() error {
		p.instances = slices.DeleteFunc(p.instances, func(i crr.Instance) bool {
			return i.State == identity.StateExited && slices.Contains(remove, i.ID)
		})
		return nil
	})
	return Result{Err: err, Touched: action.Start != nil && action.Start.Touch}
}

func (p *process) engine() *Engine {
	config := Config{
		Observer: p, Store: p, Annotator: p, Actor: p, Deleted: apierrors.IsNotFound, ClockOffset: func() time.Duration { return 0 },
		Options: crr.Options{SignalsOnly: p.sidecar}, MaxConcurrent: 1, Logger: slog.New(slog.DiscardHandler),
		Changed: func(identity.Pod) {
			select {
			case p.changed <- struct{}{}:
			default:
			}
		},
	}
	if p.sidecar {
		config.Annotator = nil
	}
	return New(config)
}

// run runs a process until the request has ended or the process has crashed, at most for a minute.
func (w *world) run(ctx context.Context, p *process) {
	p.world, p.changed = w, make(chan struct{}, 1)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	e := p.engine()
	defer e.Wait()
	defer cancel()
	e.Put(key, w.first.DeepCopy()) // the first list may be old
	for !p.over() {
		again, _ := e.Next(ctx, key)
		pause := 300 * time.Millisecond
		if !again.IsZero() {
			pause = min(max(time.Until(again.Time), time.Millisecond), pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-time.After(pause):
			p.watch(e)
		}
	}
}

func (p *process) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed || p.request == nil || crr.Completed(p.request)
}

func (p *process) watch(e *Engine) {
	p.mu.Lock()
	request := p.request
	p.mu.Unlock()
	if request != nil {
		e.Put(key, request.DeepCopy())
	}
}
