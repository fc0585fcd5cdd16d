package image

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
)

// Puller pulls one image. The daemon implements it with the container runtime.
type Puller interface {
	// Present finds the ID of an image that the node has; empty when it has not.
	Present(ctx context.Context, image Reference) (id string, err error)
	// Pull returns when the image is on the node, or with why not. It reports bytes if it can. The end of ctx ends it.
	Pull(ctx context.Context, want Want, report func(pulled, total int64)) (id string, err error)
}

// QueueConfig is what NewQueue needs.
type QueueConfig struct {
	Puller Puller
	// Parallel pulls at most, at least 1.
	Parallel int
	// Changed is called after the state of a pull has changed. It must not block or call the Queue. It may be nil.
	Changed func()
	// Ended is called once for each pull that has succeeded or failed. It must not block or call the Queue. It may be nil.
	Ended func(Want, State)
}

// Queue runs the pulls of a node: each image once at a time, so many at a time, older requests first, failed ones again
// after their back-off. All methods may be called concurrently.
type Queue struct {
	config QueueConfig
	ctx    context.Context //nolint:containedctx // the life of the queue's goroutines, ended by Stop
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	pulls   map[Reference]*pull
	running map[string]bool // full references being pulled
	timer   *time.Timer
}

// pull is one Want and what has become of it.
type pull struct {
	want   Want
	full   string
	state  State
	cancel context.CancelCauseFunc // of the attempt under way
}

// errUnwanted ends an attempt whose image is no longer in the spec, or in another version.
var errUnwanted = errors.New("no longer requested")

// NewQueue makes a queue with nothing in it. It works until ctx ends or Stop is called.
func NewQueue(ctx context.Context, config QueueConfig) *Queue {
	config.Parallel = max(config.Parallel, 1)
	ctx, stop := context.WithCancel(ctx)
	return &Queue{config: config, ctx: ctx, stop: stop, pulls: map[Reference]*pull{}, running: map[string]bool{}}
}

// Stop cancels what is under way and returns when it has ended. Nothing starts afterwards.
func (q *Queue) Stop() {
	q.stop()
	q.mu.Lock()
	if q.timer != nil {
		q.timer.Stop()
	}
	q.mu.Unlock()
	q.work.Wait()
}

// Set replaces what is wanted. What is no longer wanted is cancelled; another version starts a new pull; of the same version
// a changed policy holds from the next attempt on. known tells the state of images that an earlier queue, before a
// restart of the program, has dealt with; it may be nil.
func (q *Queue) Set(wants []Want, known func(Want) (State, bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kept := map[Reference]bool{}
	for _, want := range wants {
		kept[want.Reference] = true
		if p := q.pulls[want.Reference]; p != nil && p.want.Version == want.Version {
			p.want = want
			p.state = p.state.within(want.Deadline)
			continue
		}
		q.drop(want.Reference)
		q.add(want, known)
	}
	for reference := range q.pulls {
		if !kept[reference] {
			q.drop(reference)
		}
	}
	q.dispatch()
	q.changed()
}

func (q *Queue) add(want Want, known func(Want) (State, bool)) {
	p := &pull{want: want, state: State{Phase: v1beta1.ImagePhaseWaiting}}
	q.pulls[want.Reference] = p
	if known != nil {
		if state, ok := known(want); ok {
			p.state = state
			return
		}
	}
	full, err := want.Full()
	if err != nil {
		p.state = p.state.begin(&want, time.Now()).end(&want, "", err, time.Now())
		q.ended(p)
		return
	}
	p.full = full
}

func (q *Queue) drop(reference Reference) {
	if p := q.pulls[reference]; p != nil && p.cancel != nil {
		p.cancel(errUnwanted)
	}
	delete(q.pulls, reference)
}

// States of all that is wanted.
func (q *Queue) States() map[Reference]State {
	q.mu.Lock()
	defer q.mu.Unlock()
	states := make(map[Reference]State, len(q.pulls))
	for reference, p := range q.pulls {
		states[reference] = p.state
	}
	return states
}

// dispatch starts what may start, and sets the timer for what may start later. It is called with mu held.
func (q *Queue) dispatch() {
	if q.ctx.Err() != nil {
		return
	}
	now := time.Now()
	start, again := next(q.pulls, q.running, q.config.Parallel, now)
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

// next decides which pulls start now, and when to look again without another reason.
func next(pulls map[Reference]*pull, running map[string]bool, parallel int, now time.Time) (start []*pull, again time.Time) {
	var waiting []*pull
	for _, p := range pulls {
		switch {
		case p.state.Phase != v1beta1.ImagePhaseWaiting:
		case now.Before(p.state.notBefore):
			if again.IsZero() || p.state.notBefore.Before(again) {
				again = p.state.notBefore
			}
		default:
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, func(a, b *pull) int {
		return cmp.Or(cmp.Compare(min(a.state.attempts, 1), min(b.state.attempts, 1)), before(&a.want, &b.want)) // retries last
	})
	free := parallel - len(running)
	chosen := map[string]bool{}
	for _, p := range waiting {
		if free == len(start) {
			break
		}
		if !running[p.full] && !chosen[p.full] {
			chosen[p.full] = true
			start = append(start, p)
		}
	}
	return start, again
}

// start begins an attempt. It is called with mu held.
func (q *Queue) start(p *pull, now time.Time) {
	p.state = p.state.begin(&p.want, now)
	ctx, cancel := context.WithCancelCause(q.ctx)
	p.cancel = cancel
	q.running[p.full] = true
	want, deadline := p.want, p.state.deadline
	q.changed()
	q.work.Go(func() {
		defer cancel(nil)
		id, err := q.attempt(ctx, p, want, deadline)
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.running, p.full)
		if q.ctx.Err() == nil && q.pulls[want.Reference] == p {
			p.cancel = nil
			p.state = p.state.end(&p.want, id, err, time.Now())
			q.ended(p)
			q.changed()
		}
		q.dispatch() //nolint:contextcheck // that of the queue, not of one attempt
	})
}

func (q *Queue) attempt(ctx context.Context, p *pull, want Want, deadline time.Time) (string, error) {
	if !deadline.IsZero() {
		limited, cancel := context.WithDeadlineCause(ctx, deadline, errDeadline)
		defer cancel()
		ctx = limited
	}
	ctx, cancel := context.WithTimeoutCause(ctx, want.Timeout, errTimeout)
	defer cancel()
	if !want.Always {
		if id, err := q.config.Puller.Present(ctx, want.Reference); err != nil || id != "" {
			return id, explain(ctx, err)
		}
	}
	id, err := q.config.Puller.Pull(ctx, want, func(pulled, total int64) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.pulls[want.Reference] == p && p.state.Phase == v1beta1.ImagePhasePulling && (p.state.Pulled != pulled || p.state.Total != total) {
			p.state.Pulled, p.state.Total = pulled, total
			q.changed()
		}
	})
	return id, explain(ctx, err)
}

func (q *Queue) changed() {
	if q.config.Changed != nil {
		q.config.Changed()
	}
}

func (q *Queue) ended(p *pull) {
	if q.config.Ended != nil && p.state.Ended() {
		q.config.Ended(p.want, p.state)
	}
}
