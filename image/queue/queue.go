// Package queue runs the image pulls of one node through the port Puller. Pulls of one namespace do not block pulls of
// another one. Failed pulls are retried after a back-off. Queue owns its goroutines, and Stop waits for them. Clients,
// credentials and the container runtime must stay out.
package queue

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

// Puller pulls one image. The daemon implements it with the container runtime.
type Puller interface {
	// Present returns the ID of an image that the node has, or "".
	Present(ctx context.Context, image image.Reference) (id string, err error)
	// Pull returns when the image is on the node, or with an error. It must only use secrets of the namespace of want.
	// It reports bytes if it can. It ends when ctx ends.
	Pull(ctx context.Context, want image.Want, report func(pulled, total int64)) (Pulled, error)
}

// Pulled is the outcome of an attempt.
type Pulled struct {
	ID string
	// WithSecret says that the pull needed a secret of the namespace.
	WithSecret bool
	// Present says that the image was on the node, and the registry was not asked.
	Present bool
}

// Config configures a Queue.
type Config struct {
	Puller Puller
	// Parallel is the maximum number of concurrent pulls, at least 1. A namespace may use one less if there are two.
	// Namespaces without pulls may use as many again together.
	Parallel int
	// Changed is called after the state of a pull has changed. It must not block or call the Queue. It may be nil.
	Changed func()
	// Ended is called once for each pull that has succeeded or failed. It must not block or call the Queue. It may be nil.
	Ended func(image.Want, image.State)
}

// Queue runs the pulls of a node. All methods may be called concurrently.
type Queue struct {
	config Config
	ctx    context.Context //nolint:containedctx // the lifetime of the queue's goroutines, ended by Stop
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	pulls   map[image.Target]*pull
	running map[*pull]time.Time  // attempts in progress, also of pulls that are no longer wanted, with their start times
	served  map[string]uint64    // number of the last attempt of each namespace
	begun   uint64               // number of attempts
	secret  map[source]time.Time // removed pulls with a secret, with the time of their removal
	timer   *time.Timer
}

// pull is one Want and its state.
type pull struct {
	want   image.Want
	full   string
	state  progress
	cancel context.CancelCauseFunc // of the attempt in progress
}

// errUnwanted ends an attempt whose image is no longer in the spec, or in another version.
var errUnwanted = errors.New("no longer requested")

// New returns an empty queue. It works until ctx ends or Stop is called.
func New(ctx context.Context, config Config) *Queue {
	config.Parallel = max(config.Parallel, 1)
	ctx, stop := context.WithCancel(ctx)
	return &Queue{config: config, ctx: ctx, stop: stop, pulls: map[image.Target]*pull{}, running: map[*pull]time.Time{}, served: map[string]uint64{}, secret: map[source]time.Time{}}
}

// Stop cancels attempts in progress and returns when they have ended. Nothing starts afterwards.
func (q *Queue) Stop() {
	q.stop()
	q.mu.Lock()
	if q.timer != nil {
		q.timer.Stop()
	}
	q.mu.Unlock()
	q.work.Wait()
}

// Set replaces the wanted images. Images that are no longer wanted are cancelled; a new version starts a new pull; for
// the same version a changed policy applies from the next attempt on, and ends a pull that has no further attempts.
// known returns the state of images from an earlier queue, before a restart of the program; it may be nil.
func (q *Queue) Set(wants []image.Want, known func(image.Want) (image.State, bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kept, namespaces := map[image.Target]bool{}, map[string]bool{}
	for _, want := range wants {
		kept[want.Target], namespaces[want.Namespace] = true, true
		p := q.pulls[want.Target]
		switch {
		case p != nil && p.want.Version == want.Version:
			ended := p.state.Ended()
			p.want, p.state = want, p.state.under(&want, time.Now())
			if !ended {
				q.ended(p)
			}
		case p != nil:
			before := p.state.State
			q.drop(want.Target)
			q.add(want, before)
		default:
			before := image.State{Phase: v1beta1.ImagePhaseWaiting, Version: want.Version}
			if known != nil {
				if state, ok := known(want); ok {
					before = state
				}
			}
			q.add(want, before)
		}
	}
	for target := range q.pulls {
		if !kept[target] {
			q.drop(target)
		}
	}
	maps.DeleteFunc(q.served, func(namespace string, _ uint64) bool { return !namespaces[namespace] })
	q.dispatch()
	q.changed()
}

// add adds a pull with its earlier state. An unfinished pull starts again.
func (q *Queue) add(want image.Want, before image.State) {
	full, err := want.Full()
	p := &pull{want: want, full: full}
	q.pulls[want.Target] = p
	if before.Version == want.Version && before.Ended() {
		p.state.State = before
		return
	}
	p.state.State = before.Next(want)
	if err != nil {
		p.state = p.state.begin(&want, time.Now()).end(&want, Pulled{}, err, time.Now())
		q.ended(p)
	}
}

func (q *Queue) drop(target image.Target) {
	if p := q.pulls[target]; p != nil {
		if p.cancel != nil {
			p.cancel(errUnwanted)
		}
		q.remember(p, time.Now())
	}
	delete(q.pulls, target)
}

// States returns the states of all wanted images.
func (q *Queue) States() map[image.Target]image.State {
	q.mu.Lock()
	defer q.mu.Unlock()
	states := make(map[image.Target]image.State, len(q.pulls))
	for target, p := range q.pulls {
		states[target] = p.state.State
	}
	return states
}

// dispatch starts the pulls that may start, and sets the timer for those that may start later. The caller holds mu.
func (q *Queue) dispatch() {
	if q.ctx.Err() != nil {
		return
	}
	now := time.Now()
	start, again := next(q.pulls, q.running, q.served, q.config.Parallel, now)
	for _, p := range start {
		q.start(p, now)
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	if !again.IsZero() {
		q.timer = time.AfterFunc(again.Sub(now), func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.dispatch()
		})
	}
}

// start starts an attempt. The caller holds mu.
func (q *Queue) start(p *pull, now time.Time) {
	p.state = p.state.begin(&p.want, now)
	ctx, cancel := context.WithCancelCause(q.ctx)
	p.cancel = cancel
	q.running[p] = now
	q.begun++
	q.served[p.want.Namespace] = q.begun
	want, deadline := p.want, p.state.deadline
	look := !want.Always && !private(q.pulls, q.secret, p, now)
	q.changed()
	q.work.Go(func() {
		defer cancel(nil)
		got, err := q.attempt(ctx, p, want, deadline, look)
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.running, p)
		if q.ctx.Err() == nil && q.pulls[want.Target] == p {
			p.cancel = nil
			p.state = p.state.end(&p.want, got, err, time.Now())
			q.ended(p)
			q.changed()
		} else if err == nil && got.WithSecret {
			q.unwantedPulled(p, time.Now())
		}
		q.dispatch() //nolint:contextcheck // uses the context of the queue, not of one attempt
	})
}

// attempt pulls the image, or, if look is set, uses the one that the node has.
func (q *Queue) attempt(ctx context.Context, p *pull, want image.Want, deadline time.Time, look bool) (Pulled, error) {
	if !deadline.IsZero() {
		limited, cancel := context.WithDeadlineCause(ctx, deadline, errDeadline)
		defer cancel()
		ctx = limited
	}
	ctx, cancel := context.WithTimeoutCause(ctx, want.Timeout, errTimeout)
	defer cancel()
	if look {
		if id, err := q.config.Puller.Present(ctx, want.Reference); err != nil || id != "" {
			return Pulled{ID: id, Present: true}, explain(ctx, err)
		}
	}
	got, err := q.config.Puller.Pull(ctx, want, func(pulled, total int64) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.pulls[want.Target] == p && p.state.Phase == v1beta1.ImagePhasePulling && (p.state.Pulled != pulled || p.state.Total != total) {
			p.state.Pulled, p.state.Total = pulled, total
			q.changed()
		}
	})
	return got, explain(ctx, err)
}

func (q *Queue) changed() {
	if q.config.Changed != nil {
		q.config.Changed()
	}
}

func (q *Queue) ended(p *pull) {
	if q.config.Ended != nil && p.state.Ended() {
		q.config.Ended(p.want, p.state.State)
	}
}
