package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kube/ownpod"
)

// callTimeout bounds the calls of one operation.
const callTimeout = 10 * time.Second

// API is what the record needs of the API server; *ownpod.Client has the methods.
type API interface {
	Get(ctx context.Context, ref ownpod.Reference) ([]byte, error)
	Patch(ctx context.Context, ref ownpod.Reference, mediaType string, body []byte) ([]byte, error)
	Create(ctx context.Context, ref ownpod.Reference, body []byte) ([]byte, error)
}

// Options of a Store.
type Options struct {
	// API is nil without an API server: then nothing is recorded.
	API API
	// ConfigMap in the pod's namespace; empty records nothing.
	ConfigMap string
	Pod       identity.Pod
	// Observed is the pod as it was last seen; nil when it cannot be read.
	Observed func() *corev1.Pod
	// StoreQueries permits URLs with a query in the ConfigMap.
	StoreQueries bool
	// Delivered are the names of files that triggers have brought, with their SHA-256; nil without triggers.
	Delivered func() map[string]string
}

func (o Options) delivered() map[string]string {
	if o.Delivered == nil {
		return nil
	}
	return o.Delivered()
}

// Store is the record of our workload. It belongs to the goroutine that restores, and then to the one that records.
type Store struct {
	options Options
	ref     ownpod.Reference
	own     workload
	// record as it was read last, with what this pod has accepted since.
	record record
	// current is how to get what this pod has.
	current Revision
	known   bool
	// unwritten is when this pod accepted what the ConfigMap does not have yet; zero: it has everything.
	unwritten time.Time
}

// New makes a Store; nothing is read yet.
func New(o Options) *Store {
	return &Store{options: o, ref: ownpod.Reference{Version: "v1", Resource: "configmaps", Namespace: o.Pod.Namespace, Name: o.ConfigMap}}
}

// Reference names the ConfigMap; its Name is empty when nothing is recorded.
func (s *Store) Reference() ownpod.Reference { return s.ref }

func (s *Store) enabled() bool { return s.options.API != nil && s.ref.Name != "" }

// Latest reads what the workload accepted last. None is no error, and neither is a ConfigMap that does not exist.
func (s *Store) Latest(ctx context.Context) (Revision, bool, error) {
	if !s.enabled() {
		return Revision{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ours, data, err := s.read(ctx)
	if err != nil {
		return Revision{}, false, err
	}
	if ours != nil {
		s.record = *ours
		found, ok := ours.current()
		return found, ok, nil
	}
	// What the reference implementation has written for this very pod. It read those of all other pods, too.
	found, ok := parseReference(data[referenceKey(s.options.Pod.Namespace, s.options.Pod.Name)])
	return found, ok, nil
}

// read reads the record of our workload, nil if there is none, and the data of the ConfigMap, if it exists.
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
	if r.UID != w.uid { // of a workload that had the name before
		return nil, stored.Data, nil
	}
	return &r, stored.Data, nil
}

// Restored says that this pod has what Latest gave.
func (s *Store) Restored(r Revision) { s.current, s.known = r, true }

// Fresh says that this pod began with nothing.
func (s *Store) Fresh() { s.current, s.known = Revision{}, true }

// find looks up how to get what the volume of this pod had before the sidecar was started.
func (s *Store) find(ctx context.Context, before hotupdate.Revision) error {
	if s.known {
		return nil
	}
	if _, _, err := s.Latest(ctx); err != nil {
		return err
	}
	found, ok := s.of(before)
	if !ok {
		found = Revision{Version: before.Version, Digest: before.Digest, Partial: true, Reason: "files that this pod had and the record does not know"}
	}
	s.current, s.known = found, true
	return nil
}

// of is how to get a revision that this pod has: the zero Revision if no request has brought any of its files, since those
// that were there before, and those of triggers, are in a new pod without the record. ok is false if the record does not
// know it.
func (s *Store) of(r hotupdate.Revision) (of Revision, ok bool) {
	set := r.DigestWithout(s.options.delivered())
	if r.Version == hotupdate.InitialVersion || set == (hotupdate.Revision{}).DigestWithout(nil) {
		return Revision{}, true
	}
	return s.record.find(r.Digest, set)
}

// Accepted records how to get a revision that has been accepted; before is the one that it replaced. After an error it may be
// called again with the same.
func (s *Store) Accepted(ctx context.Context, request hotupdate.Request, before, accepted hotupdate.Revision) error {
	if !s.enabled() {
		return nil
	}
	if err := s.find(ctx, before); err != nil {
		return err
	}
	if m, ok := s.record.current(); ok && m.Version == accepted.Version && m.Digest == accepted.Digest {
		s.current = m
		return s.writeAgain(ctx)
	}
	return s.write(ctx, s.options.newRevision(request, accepted, s.current, time.Now()))
}

// RolledBack makes a revision that was gone back to the recorded one. After an error it may be called again with the same.
func (s *Store) RolledBack(ctx context.Context, accepted hotupdate.Revision) error {
	if !s.enabled() {
		return nil
	}
	if err := s.find(ctx, accepted); err != nil {
		return err
	}
	m, ok := s.of(accepted)
	if !ok {
		m = Revision{Version: accepted.Version, Digest: accepted.Digest, Partial: true, Reason: "a revision that the record does not know"}
	}
	if !s.unwritten.IsZero() && s.record.Current == m.Digest {
		return s.writeAgain(ctx)
	}
	m.Accepted = time.Now().UTC().Truncate(time.Second)
	return s.write(ctx, m)
}

// write makes a revision the current one, here and in the ConfigMap.
func (s *Store) write(ctx context.Context, r Revision) error {
	s.current, s.record, s.unwritten = r, s.record.accept(r), time.Now()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.writeRecord(ctx)
}

// writeAgain writes what could not be written before, unless another pod has accepted something since.
func (s *Store) writeAgain(ctx context.Context) error {
	if s.unwritten.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, _, err := s.read(ctx)
	if err != nil {
		return err
	}
	if stored != nil {
		if latest, ok := stored.current(); ok && latest.Accepted.After(s.unwritten) {
			s.unwritten = time.Time{}
			return nil
		}
	}
	return s.writeRecord(ctx)
}

// writeRecord writes the record into the ConfigMap.
func (s *Store) writeRecord(ctx context.Context) error {
	w, err := s.workload(ctx)
	if err != nil {
		return err
	}
	s.record.UID = w.uid
	text, err := formatRecord(s.record)
	if err != nil {
		return fmt.Errorf("record %s in %s: %w", s.current.Version, s.ref, err)
	}
	// A merge patch of one key meets no conflict with other workloads' pods.
	body, err := json.Marshal(map[string]any{"data": map[string]string{w.key(): text}})
	if err != nil {
		return fmt.Errorf("encode %s: %w", s.ref, err)
	}
	_, err = s.options.API.Patch(ctx, s.ref, "application/merge-patch+json", body)
	if errors.Is(err, ownpod.ErrNotFound) {
		err = s.create(ctx, map[string]string{w.key(): text})
		if errors.Is(err, ownpod.ErrConflict) { // another pod was faster
			_, err = s.options.API.Patch(ctx, s.ref, "application/merge-patch+json", body)
		}
	}
	if err == nil {
		s.unwritten = time.Time{}
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
