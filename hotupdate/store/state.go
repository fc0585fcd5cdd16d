package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/internal/foreign"
)

// State is stored in one file, so that it changes atomically.
type State struct {
	// Current is the ID of the revision accepted last, and Pending the ID of the one that is being put in force.
	Current string `json:"current"`
	Pending string `json:"pending,omitempty"`
	// Accepted are the IDs of accepted revisions, oldest first, including Current.
	Accepted []string `json:"accepted"`
	// Delivered is the last delivery of each trigger, by the trigger's name.
	Delivered map[string]Delivery `json:"delivered,omitempty"`
	// ReloadPending means that Current is in force and the program has still to be reloaded.
	ReloadPending bool `json:"untold,omitempty"`
	// Provisional means that Current is a replacement for the wanted revision, which could not be fetched or read.
	Provisional bool `json:"provisional,omitempty"`
	// ToRecord is when the revision that has to be recorded outside of the folder was accepted or rolled back to.
	ToRecord time.Time `json:"record,omitzero"`
}

// Delivery is the last accepted content of a trigger.
type Delivery struct {
	Digest string `json:"digest"`
	// Files are the SHA-256 digests of its files, by name.
	Files map[string]string `json:"files,omitempty"`
	// Earlier are digests of files of its deliveries before that accepted revisions still contain, by name: a roll back puts
	// them in force again.
	Earlier map[string][]string `json:"earlier,omitempty"`
}

// Load reads the state. It returns the zero State if there is none, and the zero State and damaged if it cannot be read.
func (s *Store) Load() (st State, damaged bool, err error) {
	b, err := s.readOwn(stateFile, maxState)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return State{}, false, nil
	case errors.Is(err, payload.ErrTooLarge):
		return State{}, true, nil
	case err != nil:
		return State{}, false, err
	}
	if foreign.Object(b, &st) != nil || !st.valid() {
		return State{}, true, nil
	}
	return st, false, nil
}

func (st State) valid() bool {
	if st.Pending != "" && !validID.MatchString(st.Pending) || !slices.Contains(st.Accepted, st.Current) {
		return false
	}
	return !slices.ContainsFunc(st.Accepted, func(id string) bool { return !validID.MatchString(id) })
}

// Save replaces the state on disk.
func (s *Store) Save(st State) error {
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	if err := foreign.CheckObject(b, &st); err != nil { // a state that cannot be read back would be lost
		return fmt.Errorf("%w: state: %w", payload.ErrTooLarge, err)
	}
	if len(b) > maxState {
		return fmt.Errorf("%w: state of more than %d bytes", payload.ErrTooLarge, maxState)
	}
	return s.replace(stateFile, b)
}

// Recorded returns the State.ToRecord that has been recorded; zero if none has. It has a file of its own, because it is
// written during updates.
func (s *Store) Recorded() time.Time {
	var at time.Time
	b, err := s.readOwn(recordedFile, maxRecorded)
	if err != nil || at.UnmarshalText(b) != nil {
		return time.Time{} // it is recorded once more
	}
	return at
}

// SaveRecorded stores the result of Recorded. It may be called by another goroutine than the other methods.
func (s *Store) SaveRecorded(at time.Time) error {
	b, err := at.MarshalText()
	if err != nil {
		return err
	}
	return s.replace(recordedFile, b)
}
