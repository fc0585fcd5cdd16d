package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
)

const (
	// callTimeout bounds the calls of one operation.
	callTimeout = 10 * time.Second
	// staleAge is the age at which a revision counts as not recorded at once.
	staleAge = 15 * time.Second
)

// API has the calls of the API server that the record needs; *ownpod.Client implements it.
type API interface {
	Get(ctx context.Context, ref ownpod.Reference) ([]byte, error)
	Patch(ctx context.Context, ref ownpod.Reference, mediaType string, body []byte) ([]byte, error)
	Create(ctx context.Context, ref ownpod.Reference, body []byte) ([]byte, error)
}

// Options of a Store.
type Options struct {
	// API is nil without an API server. Nothing is recorded then.
	API API
	// ConfigMap in the pod's namespace; empty records nothing.
	ConfigMap string
	Pod       identity.Pod
	// Observed returns the last known pod; nil if it cannot be read.
	Observed func() *corev1.Pod
}

// Store is the record of our workload. Its methods may be called by several goroutines.
type Store struct {
	options Options
	ref     ownpod.Reference

	mu  sync.Mutex // held during calls of the API
	own workload
	// record as it was last read or written.
	record record
}

// New creates a Store. It reads nothing yet.
func New(o Options) *Store {
	return &Store{options: o, ref: ownpod.Reference{Version: "v1", Resource: "configmaps", Namespace: o.Pod.Namespace, Name: o.ConfigMap}}
}

// Reference returns the name of the ConfigMap; its Name is empty if nothing is recorded.
func (s *Store) Reference() ownpod.Reference { return s.ref }

func (s *Store) enabled() bool { return s.options.API != nil && s.ref.Name != "" }

// Latest returns the revision that the workload accepted last, and after it the complete revisions before it, the newest
// first. An empty or missing ConfigMap is no error.
func (s *Store) Latest(ctx context.Context) ([]Revision, error) {
	if !s.enabled() {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ours, data, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	if ours != nil {
		s.record = *ours
		return ours.wanted(), nil
	}
	// The reference implementation has written this for this very pod. It also read the entries of all other pods; we do
	// not.
	if found, ok := parseReference(data[referenceKey(s.options.Pod.Namespace, s.options.Pod.Name)]); ok {
		return []Revision{found}, nil
	}
	return nil, nil
}

// read returns the record of our workload, nil if there is none, and the data of the ConfigMap, if it exists.
func (s *Store) read(ctx context.Context) (*record, map[string]string, error) {
	w, err := s.workload(ctx)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.options.API.Get(ctx, s.ref)
	if errors.Is(err, ownpod.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var stored corev1.ConfigMap
	if err := json.Unmarshal(b, &stored); err != nil {
		return nil, nil, fmt.Errorf("decode %s: %w", s.ref, err)
	}
	text, ok := stored.Data[w.key()]
	if !ok {
		return nil, stored.Data, nil
	}
	r, err := parseRecord(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s, key %s: %w", s.ref, w.key(), err)
	}
	if r.UID != w.uid { // the record of a deleted workload with the same name
		return nil, stored.Data, nil
	}
	return &r, stored.Data, nil
}

// Accepted records a revision that this pod has accepted or rolled back to. After an error it may be called again. If that
// happens much later, such as after an outage of the API server, it does not replace what another pod has accepted since.
func (s *Store) Accepted(ctx context.Context, m Revision) error {
	if !s.enabled() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, _, err := s.read(ctx)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	s.record = record{}
	if stored != nil {
		s.record = *stored
	}
	// For a revision that is recorded at once, the clocks of other pods do not matter.
	latest, ok := s.record.current()
	if ok && (latest.Version == m.Version && latest.Digest == m.Digest || time.Since(m.Accepted) > staleAge && latest.Accepted.After(m.Accepted)) {
		return nil
	}
	return s.write(ctx, m)
}

// write makes a revision the current one in the ConfigMap.
func (s *Store) write(ctx context.Context, m Revision) error {
	w, err := s.workload(ctx)
	if err != nil {
		return err
	}
	next := s.record.accept(m)
	next.UID = w.uid
	text, err := formatRecord(next)
	if err != nil {
		return fmt.Errorf("record %s in %s: %w", m.Version, s.ref, err)
	}
	// A merge patch of one key does not conflict with pods of other workloads.
	body, err := json.Marshal(map[string]any{"data": map[string]string{w.key(): text}})
	if err != nil {
		return fmt.Errorf("encode %s: %w", s.ref, err)
	}
	_, err = s.options.API.Patch(ctx, s.ref, "application/merge-patch+json", body)
	if errors.Is(err, ownpod.ErrNotFound) {
		err = s.create(ctx, map[string]string{w.key(): text})
		if errors.Is(err, ownpod.ErrConflict) { // another pod wrote first
			_, err = s.options.API.Patch(ctx, s.ref, "application/merge-patch+json", body)
		}
	}
	if err == nil {
		s.record = next
	}
	return err
}

func (s *Store) create(ctx context.Context, data map[string]string) error {
	created := corev1.ConfigMap{Data: data}
	created.APIVersion, created.Kind, created.Name = "v1", "ConfigMap", s.ref.Name
	body, err := json.Marshal(created)
	if err != nil {
		return fmt.Errorf("encode %s: %w", s.ref, err)
	}
	collection := s.ref
	collection.Name = ""
	_, err = s.options.API.Create(ctx, collection, body)
	return err
}
