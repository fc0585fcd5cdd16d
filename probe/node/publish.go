package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/stale"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/node/probespec"
	"github.com/refit-project/refit/probe/node/probestatus"
)

const (
	// settle is how long a write waits for further changes.
	settle = 150 * time.Millisecond
	// settleEach extends the minimum time between two writes for each record: the status of a full node has hundreds of
	// kilobytes.
	settleEach = time.Millisecond
	// settleUnknown is how long to wait for the first result of a new probe before the status says Unknown. Most probes
	// have a result within a second, which saves one of two writes for a new pod.
	settleUnknown = 2 * time.Second
	// settleMessage is the minimum time between writes for frequently changing messages, such as messages that contain
	// a time. The change of a message that was unchanged for this long is written as soon as a change of state.
	settleMessage = 10 * time.Second

	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// writeSoon requests a write because of a change of state.
func (m *Manager) writeSoon() { m.writer.RequestAfter(m.config.Node, settle, m.pace()) }

// writeUnknown requests a write for a new probe without a result.
func (m *Manager) writeUnknown() { m.writer.RequestAfter(m.config.Node, settleUnknown, m.pace()) }

// writeLazily requests a write for a message that changes often.
func (m *Manager) writeLazily() { m.writer.RequestAfter(m.config.Node, settle, settleMessage) }

// pace returns the minimum time between writes. The caller holds mu.
func (m *Manager) pace() time.Duration { return settle + time.Duration(m.ledger.Size())*settleEach }

// begin returns the initial result of a probe of a container instance: the last result for the same instance, from this
// process or, through the status, from the previous daemon.
func (m *Manager) begin(p probespec.Pod, wanted v1alpha1.ContainerProbe, where probespec.Container) probe.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := m.ledger.Of(p.Namespace, p.Name, p.UID)
	r := records[wanted.Name]
	if r == nil && m.object != nil {
		state, ok := probestatus.Published(m.object.Status, p.UID, wanted.Name)
		if ok && state.LastProbeTime.Unix() >= where.StartedAt.Unix() {
			r = probestatus.RecordOf(where.Instance, state)
			records[wanted.Name] = r
		}
	}
	if r == nil || r.Instance != where.Instance {
		now, first := time.Now(), r == nil
		r = &probestatus.Record{Instance: where.Instance, State: v1alpha1.ProbeUnknown, ProbedAt: now, ChangedAt: now}
		records[wanted.Name] = r
		if first {
			r.Hidden = now.Add(settleUnknown)
			m.writeUnknown()
		} else {
			m.writeSoon() // the result of the previous instance does not apply to this one
		}
	}
	return probe.Result{State: probe.State(r.State), Message: r.Message, ChangedAt: r.ChangedAt}
}

// set stores a result, sends an Event for a transition, and requests a write of the status if the result changes it.
func (m *Manager) set(p probespec.Pod, wanted v1alpha1.ContainerProbe, found probestatus.Record, now time.Time) {
	if !m.note(p, wanted, found, now) {
		return
	}
	if kind, reason, ok := transition(found.State); ok {
		m.config.Events.Event(kubelet.ContainerReference(p.Namespace, p.Name, p.UID, wanted.ContainerName), kind, reason,
			foreign.Cut(strings.TrimSuffix(fmt.Sprintf("Probe %s of container %s: %s", wanted.Name, wanted.ContainerName, found.Message), ": "), result.MaxMessage))
	}
}

// note stores a result and reports whether the state has changed.
func (m *Manager) note(p probespec.Pod, wanted v1alpha1.ContainerProbe, found probestatus.Record, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := m.ledger.Of(p.Namespace, p.Name, p.UID)
	before := records[wanted.Name]
	if before == nil {
		before = &probestatus.Record{State: v1alpha1.ProbeUnknown}
		if m.object != nil {
			if state, ok := probestatus.Published(m.object.Status, p.UID, wanted.Name); ok {
				before = probestatus.RecordOf("", state)
			}
		}
	}
	if before.State == found.State {
		found.ChangedAt = before.ChangedAt
	} else if found.ChangedAt.IsZero() {
		found.ChangedAt = now
	}
	if found.ProbedAt.IsZero() {
		found.ProbedAt = now
	}
	if found.MessageAt = now; before.Message == found.Message {
		found.MessageAt = before.MessageAt
	}
	if before.State == found.State && before.Message == found.Message {
		found.ProbedAt = before.ProbedAt
	}
	records[wanted.Name] = &found
	switch {
	case before.State != found.State, found.Ended && !before.Ended:
		m.writeSoon()
	case before.Message == found.Message:
	case now.Sub(before.MessageAt) < settleMessage:
		m.writeLazily()
	default:
		m.writeSoon()
	}
	return before.State != found.State
}

// status returns the status that the object should have. The caller holds mu.
func (m *Manager) status(object *v1alpha1.NodePodProbe, now time.Time) v1alpha1.NodePodProbeStatus {
	status := m.ledger.Status(now)
	status.Conditions = m.conditions(object.Status.Conditions, now)
	return status
}

// statusDestination writes the status of the node's NodePodProbe. The key is the node's name.
type statusDestination struct{ *Manager }

// Write implements result.Destination. It writes the status if it differs from the stored one.
func (d statusDestination) Write(ctx context.Context, node string) (result.Requests, error) {
	d.mu.Lock()
	now := time.Now()
	object := d.object
	if !d.looked || object == nil {
		d.mu.Unlock()
		return result.Requests{}, nil // it is written after the ledger has been filled
	}
	status := d.status(object, now)
	if until := d.ledger.Hidden(now); !until.IsZero() {
		d.writer.RequestAfter(node, until.Sub(now), d.pace())
	}
	d.mu.Unlock()
	status, cut, err := fit(object.Spec, status)
	if err != nil || probestatus.Same(object.Status, status) {
		return result.Requests{}, err
	}
	stored, err := d.config.API.WriteStatus(ctx, object, status)
	sent := result.Requests{Writes: 1}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return sent, fmt.Errorf("%w: %w", result.ErrStale, err)
	case err != nil:
		return sent, fmt.Errorf("write probe results: %w", err)
	}
	d.recordCut(cut)
	d.adopt(stored, len(status.Conditions) > 0)
	return sent, nil
}

// fit cuts the messages of a status so that the object fits the limits, and returns the length they were cut to.
func fit(spec v1alpha1.NodePodProbeSpec, status v1alpha1.NodePodProbeStatus) (v1alpha1.NodePodProbeStatus, int, error) {
	limit, err := probestatus.Limit(spec)
	if err != nil {
		return status, 0, err
	}
	return probestatus.Fit(status, limit)
}

// adopt stores the object that a write has returned.
func (m *Manager) adopt(stored *v1alpha1.NodePodProbe, conditions bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned = m.pruned || conditions && len(stored.Status.Conditions) == 0
	if m.object == nil || stored.UID != m.object.UID || !stale.Newer(stored.ResourceVersion, m.object.ResourceVersion) {
		return
	}
	if stored.Generation != m.object.Generation {
		m.specStale = true
		m.wakeUp()
	}
	m.object = stored
}

// recordCut sends an Event, once, when messages are cut.
func (m *Manager) recordCut(cut int) {
	m.mu.Lock()
	before := m.cut
	m.cut = cut
	m.mu.Unlock()
	if cut < result.MaxMessage && cut != before {
		m.config.Events.Event(m.aboutObject(), corev1.EventTypeWarning, eventCut,
			fmt.Sprintf("The results of all probes would be too large for one object: messages are cut, in the namespaces with the longest messages to %d bytes", cut))
	}
}

// transition returns the type and reason of the Event for a state, and false if there is no Event for it.
func transition(state v1alpha1.ProbeState) (kind, reason string, ok bool) {
	switch state {
	case v1alpha1.ProbeSucceeded:
		return corev1.EventTypeNormal, eventSucceeded, true
	case v1alpha1.ProbeFailed:
		return corev1.EventTypeWarning, eventFailed, true
	}
	return "", "", false
}
