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

// Phase is the progress of an update.
type Phase string

// Phases of an update in their order, and its possible ends.
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

// Status is the progress of the current or last update.
type Status struct {
	Phase Phase `json:"phase"`
	// Version is the version of the update in Phase, and Error why it failed.
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
	// ReloadSkipped is why a step of the reload was skipped for files that are in force.
	ReloadSkipped string    `json:"untold,omitempty"`
	Since         time.Time `json:"since"`
}

// Updater owns one folder. Its methods may be called by several goroutines. The methods that change the folder are the methods of
// Lock.
type Updater struct {
	config  Config
	fetcher *fetch.Fetcher
	store   *store.Store
	// interrupted means that Open found an unfinished update.
	interrupted bool

	skipped string // why the current update skipped a step of the reload

	locked chan struct{} // has one element while there is a Lock

	mu     sync.Mutex
	state  store.State
	status Status
}

// Open takes over the folder. It undoes an unfinished update of an earlier process: readers see the last accepted revision
// when Open returns. The program may have loaded the other revision, see Interrupted.
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
		config: config, store: s, fetcher: fetch.New(config.Fetch), locked: make(chan struct{}, 1),
		status: Status{Phase: Idle, Since: time.Now()},
	}
	if err := u.recover(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("hot update: recover %s: %w", config.Dir, err)
	}
	return u, nil
}

// recover puts the current revision in force. If it is not known or cannot be read, it calls chooseRevision.
func (u *Updater) recover(ctx context.Context) error {
	st, damaged, err := u.store.Load()
	if err != nil {
		return err
	}
	current, err := u.store.Revision(st.Current)
	if st.Current == "" || damaged || err != nil {
		return u.chooseRevision(ctx, st)
	}
	pending, err := u.store.Revision(st.Pending)
	if err != nil {
		pending = u.store.NamesOnly(st.Pending)
	}
	if err := u.store.Publish(pending, current); err != nil {
		return err
	}
	u.interrupted = st.Pending != ""
	st.ReloadPending, st.Pending = st.ReloadPending || u.interrupted, ""
	return u.commit(st)
}

// commit stores the state and removes revisions that are no longer needed.
func (u *Updater) commit(st store.State) error {
	if n := len(st.Accepted) - u.config.Keep; n > 0 {
		st.Accepted = slices.Clone(st.Accepted[n:])
	}
	st.Accepted = u.store.Fit(st.Accepted, st.Current, u.config.MaxTotal)
	if err := u.save(st); err != nil {
		return err
	}
	u.store.Step("settled")
	_ = u.store.Prune(st.Accepted) // it only costs space, and the next update tries again
	return nil
}

// save stores st on disk and in memory.
func (u *Updater) save(st store.State) error {
	if err := u.store.Save(st); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.state = st
	return nil
}

// Close waits until nobody has the Lock, and closes the folder.
func (u *Updater) Close() {
	u.locked <- struct{}{}
	defer func() { <-u.locked }()
	u.store.Close()
}

// Interrupted reports whether Open undid an unfinished update. The program may have loaded the files of that update; Reload
// reloads it.
func (u *Updater) Interrupted() bool { return u.interrupted }

// ReloadPending reports whether the program has still to be reloaded for the files in force, see Request.ReloadLater. Reload does
// that.
func (u *Updater) ReloadPending() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state.ReloadPending
}

// Provisional reports whether the revision in force is a replacement for the wanted one: the request said so, or the
// previous revision could not be read.
func (u *Updater) Provisional() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state.Provisional
}

// Status returns the status of the current update, or else of the last one.
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
		u.status.ReloadSkipped = u.skipped
	}
}

// Revisions lists the accepted revisions that are still on disk, the current one first; before the first update it is the
// revision of the initial files. Revisions that cannot be read are left out. It does not wait for an update.
func (u *Updater) Revisions() []Revision {
	u.mu.Lock()
	ids := slices.Clone(u.state.Accepted)
	u.mu.Unlock()
	slices.Reverse(ids)
	return u.store.Readable(ids)
}

// Current returns the revision in force. The error is ErrTampered if its manifest was changed.
func (u *Updater) Current() (Revision, error) {
	u.mu.Lock()
	id := u.state.Current
	u.mu.Unlock()
	return u.store.Revision(id)
}

// CheckFolder returns an error if somebody has deleted the files of this program in the folder. No update can succeed then:
// another Updater has to open the folder. It does not wait for an update.
func (u *Updater) CheckFolder() error {
	u.mu.Lock()
	id := u.state.Current
	u.mu.Unlock()
	return u.store.CheckFolder(id)
}
