package update

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/kube/ownpod"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

// callTimeout bounds one call of the API.
const callTimeout = 10 * time.Second

// API is what memory needs of the API server; *ownpod.Client has the methods.
type API interface {
	Get(ctx context.Context, ref ownpod.Reference) ([]byte, error)
	Patch(ctx context.Context, ref ownpod.Reference, mediaType string, body []byte) ([]byte, error)
	Create(ctx context.Context, ref ownpod.Reference, body []byte) ([]byte, error)
}

// memory is the ConfigMap in which the pods of a workload remember what was accepted. It belongs to the
// goroutine that restores, and then to the one that does what is done later.
type memory struct {
	host plugin.Host
	api  API // nil: nothing is remembered
	ref  ownpod.Reference
	// record as it was read or written last.
	record record
	// request that led to the current revision, as far as it is known here.
	current remembered
}

func newMemory(host plugin.Host, configMap string) *memory {
	m := &memory{host: host, ref: ownpod.Reference{Version: "v1", Resource: "configmaps", Namespace: host.Pod.Namespace, Name: configMap}}
	if host.API != nil && configMap != "" {
		m.api = host.API
	}
	return m
}

// workload is the one of our pod.
func (m *memory) workload(ctx context.Context) (workload, error) {
	if pod := m.host.Observed(); pod != nil {
		return workloadOf(pod), nil
	}
	b, err := m.api.Get(ctx, ownpod.PodReference(m.host.Pod))
	if err != nil {
		return workload{}, err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(b, pod); err != nil {
		return workload{}, fmt.Errorf("decode pod: %w", err)
	}
	return workloadOf(pod), nil
}

// recall reads what the workload accepted last. None is no error, and neither is a ConfigMap that does not exist.
func (m *memory) recall(ctx context.Context) (remembered, bool, error) {
	if m.api == nil {
		return remembered{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	w, err := m.workload(ctx)
	if err != nil {
		return remembered{}, false, err
	}
	b, err := m.api.Get(ctx, m.ref)
	if errors.Is(err, ownpod.ErrNotFound) {
		return remembered{}, false, nil
	}
	if err != nil {
		return remembered{}, false, err
	}
	var stored corev1.ConfigMap
	if err := json.Unmarshal(b, &stored); err != nil {
		return remembered{}, false, fmt.Errorf("decode %s: %w", m.ref, err)
	}
	if text, ok := stored.Data[w.key()]; ok {
		r, err := parseRecord(text)
		if err != nil {
			return remembered{}, false, fmt.Errorf("%s, key %s: %w", m.ref, w.key(), err)
		}
		if r.UID == w.uid { // else it is of another workload that had the name
			m.record = r
			found, ok := r.current()
			return found, ok, nil
		}
	}
	// What the reference implementation has written for this very pod. It read those of all other pods, too.
	found, ok := parseReference(stored.Data[referenceKey(m.host.Pod.Namespace, m.host.Pod.Name)])
	return found, ok, nil
}

// accept remembers a revision as the current one.
func (m *memory) accept(ctx context.Context, r remembered) error {
	m.current = r
	if m.api == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	w, err := m.workload(ctx)
	if err != nil {
		return err
	}
	m.record.UID = w.uid
	m.record = m.record.accept(r)
	text, err := formatRecord(m.record)
	if err != nil {
		return fmt.Errorf("remember %s in %s: %w", r.Version, m.ref, err)
	}
	// A merge patch of one key meets no conflict with other workloads' pods.
	body, err := json.Marshal(map[string]any{"data": map[string]string{w.key(): text}})
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.ref, err)
	}
	_, err = m.api.Patch(ctx, m.ref, "application/merge-patch+json", body)
	if !errors.Is(err, ownpod.ErrNotFound) {
		return err
	}
	created := corev1.ConfigMap{Data: map[string]string{w.key(): text}}
	created.APIVersion, created.Kind, created.Name = "v1", "ConfigMap", m.ref.Name
	if body, err = json.Marshal(created); err != nil {
		return fmt.Errorf("encode %s: %w", m.ref, err)
	}
	collection := m.ref
	collection.Name = ""
	if _, err = m.api.Create(ctx, collection, body); errors.Is(err, ownpod.ErrConflict) { // another pod was faster
		return m.accept(ctx, r)
	}
	return err
}

// keepInMind remembers how to get a revision that has been accepted. That it could not is told, and no failure
// of the update: the files are in force. It does not depend on the annotation of the pod.
func (p *Plugin) keepInMind(ctx context.Context, request hotupdate.Request, accepted hotupdate.Revision) {
	if m, ok := p.memory.record.find(accepted.Digest); ok && m.Version == accepted.Version && p.memory.record.Current == accepted.Digest {
		return
	}
	p.commit(ctx, remember(request, accepted, p.memory.current, time.Now()))
}

// rememberAgain makes a revision that was gone back to the remembered one.
func (p *Plugin) rememberAgain(ctx context.Context, accepted hotupdate.Revision) {
	m, ok := p.memory.record.find(accepted.Digest)
	if !ok {
		m = remembered{Version: accepted.Version, Digest: accepted.Digest, Accepted: time.Now(), Partial: true}
	}
	p.commit(ctx, m)
}

func (p *Plugin) commit(ctx context.Context, m remembered) {
	if err := p.memory.accept(ctx, m); err != nil {
		p.host.Logger.Warn("revision not remembered for other pods", "version", m.Version, "err", err)
		p.say("not remembered for other pods: " + err.Error())
		return
	}
	p.say("")
}
