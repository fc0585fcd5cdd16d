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
	// record as it was read or written last.
	record record
	// current is how to get what this pod has.
	current Revision
	known   bool
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
	w, err := s.workload(ctx)
	if err != nil {
		return Revision{}, false, err
	}
	b, err := s.options.API.Get(ctx, s.ref)
	if errors.Is(err, ownpod.ErrNotFound) {
		return Revision{}, false, nil
	}
	if err != nil {
		return Revision{}, false, err
	}
	var stored corev1.ConfigMap
	if err := json.Unmarshal(b, &stored); err != nil {
		return Revision{}, false, fmt.Errorf("decode %s: %w", s.ref, err)
	}
	if text, ok := stored.Data[w.key()]; ok {
		r, err := parseRecord(text)
		if err != nil {
			return Revision{}, false, fmt.Errorf("%s, key %s: %w", s.ref, w.key(), err)
		}
		if r.UID == w.uid { // else it is of a workload that had the name before
			s.record = r
			found, ok := r.current()
			return found, ok, nil
		}
	}
	// What the reference implementation has written for this very pod. It read those of all other pods, too.
	found, ok := parseReference(stored.Data[referenceKey(s.options.Pod.Namespace, s.options.Pod.Name)])
	return found, ok, nil
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
	found, ok := s.record.find(before.Digest)
	if !ok {
		found = Revision{Version: before.Version, Digest: before.Digest, Partial: true, Reason: "files that this pod had and the record does not know"}
	}
	s.current, s.known = found, true
	return nil
}

// Accepted records how to get a revision that has been accepted; before is the one that it replaced.
func (s *Store) Accepted(ctx context.Context, request hotupdate.Request, before, accepted hotupdate.Revision) error {
	if !s.enabled() {
		return nil
	}
	if err := s.find(ctx, before); err != nil {
		return err
	}
	if m, ok := s.record.current(); ok && m.Version == accepted.Version && m.Digest == accepted.Digest {
		s.current = m
		return nil
	}
	return s.write(ctx, s.options.newRevision(request, accepted, s.current, time.Now()))
}

// RolledBack makes a revision that was gone back to the recorded one.
func (s *Store) RolledBack(ctx context.Context, accepted hotupdate.Revision) error {
	if !s.enabled() {
		return nil
	}
	if err := s.find(ctx, accepted); err != nil {
		return err
	}
	m, ok := s.record.find(accepted.Digest)
	if !ok {
		m = Revision{Version: accepted.Version, Digest: accepted.Digest, Accepted: time.Now(), Partial: true, Reason: "a revision that the record does not know"}
	}
	return s.write(ctx, m)
}

// write makes a revision the current one, here and in the ConfigMap.
func (s *Store) write(ctx context.Context, r Revision) error {
	s.current = r
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	w, err := s.workload(ctx)
	if err != nil {
		return err
	}
	s.record.UID = w.uid
	s.record = s.record.accept(r)
	text, err := formatRecord(s.record)
	if err != nil {
		return fmt.Errorf("record %s in %s: %w", r.Version, s.ref, err)
	}
	// A merge patch of one key meets no conflict with other workloads' pods.
	body, err := json.Marshal(map[string]any{"data": map[string]string{w.key(): text}})
	if err != nil {
		return fmt.Errorf("encode %s: %w", s.ref, err)
	}
	_, err = s.options.API.Patch(ctx, s.ref, "application/merge-patch+json", body)
	if !errors.Is(err, ownpod.ErrNotFound) {
		return err
	}
	err = s.create(ctx, map[string]string{w.key(): text})
	if errors.Is(err, ownpod.ErrConflict) { // another pod was faster
		_, err = s.options.API.Patch(ctx, s.ref, "application/merge-patch+json", body)
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
