package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"
)

// State is written as one file, so that it changes as one.
type State struct {
	// Current is the revision last accepted, Pending the one on its way to be; both are IDs.
	Current string `json:"current"`
	Pending string `json:"pending,omitempty"`
	// Accepted are revisions that were current, oldest first, Current among them.
	Accepted []string `json:"accepted"`
	// Delivered is what each trigger brought last, by the trigger's name.
	Delivered map[string]Delivery `json:"delivered,omitempty"`
	// Untold: Current is in force, and the program has still to be told.
	Untold bool `json:"untold,omitempty"`
	// Provisional: Current is not what is to be in force, but what could be had.
	Provisional bool `json:"provisional,omitempty"`
	// Record is when the request was accepted, or the revision gone back to, that is to be recorded outside of the folder.
	Record time.Time `json:"record,omitzero"`
}

// Delivery is the content of a trigger that was accepted last.
type Delivery struct {
	Digest string `json:"digest"`
	// Files are the SHA-256 of its files by their names.
	Files map[string]string `json:"files,omitempty"`
}

// Load reads the state. None at all is a beginning; one that cannot be understood is reported as damaged, and
// a beginning too.
func (s *Store) Load() (st State, damaged bool, err error) {
	b, err := s.record(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, false, nil
	}
	if err != nil {
		return State{}, false, err
	}
	if json.Unmarshal(b, &st) != nil || !st.valid() {
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
	return s.replace(stateFile, b)
}

// Recorded is the State.Record that has been recorded; zero: none. It is a file of its own, since it is written while updates
// go on.
func (s *Store) Recorded() time.Time {
	var at time.Time
	b, err := s.record(recordedFile)
	if err != nil || at.UnmarshalText(b) != nil {
		return time.Time{} // it is recorded once more
	}
	return at
}

// SaveRecorded replaces Recorded. It may be called by another goroutine than the other methods.
func (s *Store) SaveRecorded(at time.Time) error {
	b, err := at.MarshalText()
	if err != nil {
		return err
	}
	return s.replace(recordedFile, b)
}
