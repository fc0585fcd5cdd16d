package hotupdate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/refit-project/refit/hotupdate/fetch"
	"github.com/refit-project/refit/hotupdate/store"
)

// Phase is how far an update is.
type Phase string

// The phases of an update in their order, and how it may end.
const (
	Idle       Phase = "Idle"
	Fetching   Phase = "Fetching"
	Checking   Phase = "Checking"
	Writing    Phase = "Writing"
	Reloading  Phase = "Reloading"
	Verifying  Phase = "Verifying"
	Accepted   Phase = "Accepted"
	Unchanged  Phase = "Unchanged"
	Failed     Phase = "Failed"
	RolledBack Phase = "RolledBack"
)

// Status is what can be told at any time.
type Status struct {
	Phase Phase `json:"phase"`
	// Version is of the update in Phase, and Error why it failed.
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
	// Untold is why the program was not told of files that are in force.
	Untold string    `json:"untold,omitempty"`
	Since  time.Time `json:"since"`
}

// Updater owns one folder. Its methods may be called by many goroutines; updates exclude one another.
type Updater struct {
	config  Config
	fetcher *fetch.Fetcher
	store   *store.Store
	// interrupted says that Open found an update under way.
	interrupted bool

	skipped string // why a step of the reload was left out, of the update under way

	busy sync.Mutex // held during an update; only who holds it changes state

	mu     sync.Mutex
	state  store.State
	status Status
}

// Open takes the folder over. What an earlier program left unfinished is undone on disk: readers see the last
// accepted revision when Open returns. The program may have loaded the other one, see Interrupted.
func Open(ctx context.Context, config Config) (*Updater, error) {
	return open(ctx, config, func(string) {})
}

func open(ctx context.Context, config Config, step func(string)) (*Updater, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	s, err := store.Open(config.Dir, step)
	if err != nil {
		return nil, fmt.Errorf("hot update: open %s: %w", config.Dir, err)
	}
	u := &Updater{
		config: config, store: s, fetcher: fetch.New(config.Fetch),
		status: Status{Phase: Idle, Since: time.Now()},
	}
	if err := u.recover(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("hot update: recover %s: %w", config.Dir, err)
	}
	return u, nil
}

// recover puts the current revision in force, see begin where it is not known or cannot be read.
func (u *Updater) recover(ctx context.Context) error {
	st, damaged, err := u.store.Load()
	if err != nil {
		return err
	}
	current, err := u.store.Revision(st.Current)
	if st.Current == "" || damaged || err != nil {
		return u.begin(ctx, st)
	}
	pending, err := u.store.Revision(st.Pending)
	if err != nil {
		pending = u.store.Remains(st.Pending)
	}
	if err := u.store.Publish(pending, current); err != nil {
		return err
	}
	u.interrupted = st.Pending != ""
	st.Untold, st.Pending = st.Untold || u.interrupted, ""
	return u.settle(st)
}

// settle records what is in force and removes what is no longer needed.
func (u *Updater) settle(st store.State) error {
	if n := len(st.Accepted) - u.config.Keep; n > 0 {
		st.Accepted = slices.Clone(st.Accepted[n:])
	}
	st.Accepted = u.store.Fit(st.Accepted, st.Current, u.config.MaxTotal)
	if err := u.record(st); err != nil {
		return err
	}
	u.store.Step("settled")
	_ = u.store.Prune(st.Accepted) // of no consequence but for space, and tried again by the next
	return nil
}

// record makes st the state, on disk and here.
func (u *Updater) record(st store.State) error {
	if err := u.store.Save(st); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.state = st
	return nil
}

// Close unlocks the folder, when the update that is running has ended.
func (u *Updater) Close() {
	u.busy.Lock()
	defer u.busy.Unlock()
	u.store.Close()
}

// Interrupted reports that Open undid an update that a kill had cut short. The program may have loaded the
// files that are no longer there; Reload tells it.
func (u *Updater) Interrupted() bool { return u.interrupted }

// Untold reports that files are in force of which the program has still to be told, see Request.TellLater; Reload does that.
func (u *Updater) Untold() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state.Untold
}

// Provisional reports that the revision in force is not what is to be, but what could be had: a request said so, or the one
// that was in force before could not be read.
func (u *Updater) Provisional() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state.Provisional
}

// Status is of the update under way, or else of the last one.
func (u *Updater) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.status
}

func (u *Updater) enter(phase Phase, version string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status = Status{Phase: phase, Version: version, Since: time.Now()}
	if err != nil {
		u.status.Error = err.Error()
	} else if phase == Accepted {
		u.status.Untold = u.skipped
	}
}

// Revisions lists the accepted revisions that are still on disk, the current one first; before the first
// update that is one of InitialVersion. One that cannot be read is left out. It does not wait for an update under way.
func (u *Updater) Revisions() []Revision {
	u.mu.Lock()
	ids := slices.Clone(u.state.Accepted)
	u.mu.Unlock()
	slices.Reverse(ids)
	return u.store.Readable(ids)
}

// Current is the revision in force; ErrTampered where its manifest was changed.
func (u *Updater) Current() (Revision, error) {
	u.mu.Lock()
	id := u.state.Current
	u.mu.Unlock()
	return u.store.Revision(id)
}

// Reload tells the program about the current revision again and verifies it, as after a restart of either.
func (u *Updater) Reload(ctx context.Context) error {
	if !u.busy.TryLock() {
		return ErrBusy
	}
	defer u.busy.Unlock()
	r, err := u.store.Revision(u.state.Current)
	if err != nil {
		return err
	}
	u.skipped = ""
	if err := u.tell(ctx, r); err != nil || !u.state.Untold {
		return err
	}
	st := u.state
	st.Untold = false
	return u.record(st)
}
