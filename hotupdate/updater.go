package hotupdate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"
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
	Version string    `json:"version,omitempty"`
	Error   string    `json:"error,omitempty"`
	Since   time.Time `json:"since"`
}

// Updater owns one folder. Its methods may be called by many goroutines; updates exclude one another.
type Updater struct {
	config  Config
	fetcher *fetcher
	store   *store
	// interrupted says that Open found an update under way.
	interrupted bool

	busy sync.Mutex // held during an update; only who holds it changes state

	mu     sync.Mutex
	state  state
	status Status
}

// Open takes the folder over. What an earlier program left unfinished is undone on disk: readers see the last
// accepted revision when Open returns. The program may have loaded the other one, see Interrupted.
func Open(config Config) (*Updater, error) { return open(config, func(string) {}) }

func open(config Config, step func(string)) (*Updater, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Keep == 0 {
		config.Keep = 5
	}
	if config.RollbackTimeout == 0 {
		config.RollbackTimeout = 30 * time.Second
	}
	config.Fetch, config.Limits = config.Fetch.withDefaults(), config.Limits.withDefaults()
	s, err := openStore(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("hot update: open %s: %w", config.Dir, err)
	}
	s.step = step
	u := &Updater{
		config: config, store: s, fetcher: newFetcher(config.Fetch),
		status: Status{Phase: Idle, Since: time.Now()},
	}
	if err := u.recover(); err != nil {
		s.close()
		return nil, fmt.Errorf("hot update: recover %s: %w", config.Dir, err)
	}
	return u, nil
}

// recover puts the current revision in force. A state that nobody understands, or a current revision without
// its manifest, is a beginning from what readers see: never a reason not to start.
func (u *Updater) recover() error {
	st, damaged, err := u.store.load()
	if err != nil {
		return err
	}
	current, err := u.store.revision(st.Current)
	if st.Current == "" || damaged || err != nil {
		return u.begin()
	}
	pending, err := u.store.revision(st.Pending)
	if err != nil {
		pending = Revision{}
	}
	if err := u.store.publish(pending, current); err != nil {
		return err
	}
	u.interrupted, st.Pending = st.Pending != "", ""
	return u.settle(st)
}

// begin makes an empty first revision, unless one can be seen.
func (u *Updater) begin() error {
	if target, err := u.store.root.Readlink(dataLink); err == nil {
		if seen, err := u.store.revision(filepath.Base(filepath.Dir(target))); err == nil {
			return u.settle(state{Current: seen.ID, Accepted: []string{seen.ID}})
		}
	}
	first, err := u.store.adopt(Revision{}, nil, u.config.Limits)
	if err != nil {
		return err
	}
	if err := u.store.publish(Revision{}, first); err != nil {
		return err
	}
	return u.settle(state{Current: first.ID, Accepted: []string{first.ID}})
}

// settle records what is in force and removes what is no longer needed.
func (u *Updater) settle(st state) error {
	if n := len(st.Accepted) - u.config.Keep; n > 0 {
		st.Accepted = slices.Clone(st.Accepted[n:])
	}
	if err := u.record(st); err != nil {
		return err
	}
	u.store.step("settled")
	_ = u.store.prune(st.Accepted) // of no consequence but for space, and tried again by the next
	return nil
}

// record makes st the state, on disk and here.
func (u *Updater) record(st state) error {
	if err := u.store.save(st); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.state = st
	return nil
}

// Close lets go of the folder. An update under way is waited for.
func (u *Updater) Close() {
	u.busy.Lock()
	defer u.busy.Unlock()
	u.store.close()
}

// Interrupted reports that Open undid an update that a kill had cut short. The program may have loaded the
// files that are no longer there; Reload tells it.
func (u *Updater) Interrupted() bool { return u.interrupted }

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
	}
}

// Revisions lists the accepted revisions that are still on disk, the current one first; before the first
// update that is one of InitialVersion. It does not wait for an update under way.
func (u *Updater) Revisions() ([]Revision, error) {
	u.mu.Lock()
	ids := slices.Clone(u.state.Accepted)
	u.mu.Unlock()
	var all []Revision
	for _, id := range slices.Backward(ids) {
		r, err := u.store.revision(id)
		if errors.Is(err, ErrUnknownRevision) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Reload tells the program about the current revision again and verifies it, as after a restart of either.
func (u *Updater) Reload(ctx context.Context) error {
	if !u.busy.TryLock() {
		return ErrBusy
	}
	defer u.busy.Unlock()
	r, err := u.store.revision(u.state.Current)
	if err != nil {
		return err
	}
	return u.tell(ctx, r)
}
