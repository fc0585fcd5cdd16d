package podprobes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/result"
)

const (
	// settle is how long a change waits for others that belong to it.
	settle = 150 * time.Millisecond
	// settleEach lengthens the pause between two writes by the size of what is written: a full node's status has
	// hundreds of kilobytes.
	settleEach = time.Millisecond
	// settleUnknown is how long a probe of which nothing was known has to answer before the status says that nothing is:
	// most answer in their first second, which saves a new pod one of two writes.
	settleUnknown = 2 * time.Second
	// settleMessage is between writes for which only messages have changed, as those with a time in them do.
	settleMessage = 10 * time.Second

	writeTimeout = 10 * time.Second
	firstRetry   = 500 * time.Millisecond
	lastRetry    = 30 * time.Second
)

// schedule is when the status is written next. It is guarded by the Manager's mu.
type schedule struct {
	due   time.Time // zero: not
	last  time.Time // attempt
	retry time.Duration
	said  string // of the last error
	cut   int    // what messages were cut to
}

// writeSoon has a change of state written. mu is held.
func (m *Manager) writeSoon() { m.writeAfter(settle, m.pace()) }

// writeUnknown has a new probe written that has not answered yet. mu is held.
func (m *Manager) writeUnknown() { m.writeAfter(settleUnknown, m.pace()) }

// writeLazily has a change of a message written. mu is held.
func (m *Manager) writeLazily() { m.writeAfter(settle, settleMessage) }

// pace is the least time between writes.
func (m *Manager) pace() time.Duration { return settle + time.Duration(m.ledger.size())*settleEach }

// writeAfter plans a write after a delay from now and a pause from the last one.
func (m *Manager) writeAfter(delay, pause time.Duration) {
	due := time.Now().Add(delay)
	if soonest := m.writer.last.Add(max(pause, m.writer.retry)); due.Before(soonest) {
		due = soonest
	}
	if m.writer.due.IsZero() || due.Before(m.writer.due) {
		m.writer.due = due
		select {
		case m.late <- struct{}{}:
		default:
		}
	}
}

// begin is what is known of a probe of a container instance that starts to be asked: what was learnt of the same
// instance before, by us or by a daemon before us, whose word is in the status.
func (m *Manager) begin(p podProbes, wanted v1alpha1.ContainerProbe, where container) probe.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := m.ledger.of(p).probes
	r := records[wanted.Name]
	if r == nil && m.object != nil {
		state, ok := published(m.object.Status, p.uid, wanted.Name)
		if ok && state.LastProbeTime.Unix() >= where.startedAt.Unix() {
			r = recordOf(where.instance, state)
			records[wanted.Name] = r
		}
	}
	if r == nil || r.instance != where.instance {
		now, first := time.Now(), r == nil
		r = &record{instance: where.instance, state: v1alpha1.ProbeUnknown, probedAt: now, changedAt: now}
		records[wanted.Name] = r
		if first {
			r.hidden = now.Add(settleUnknown)
			m.writeUnknown()
		} else {
			m.writeSoon() // what the last instance said holds no more
		}
	}
	return probe.Result{State: probe.State(r.state), Message: r.message, ChangedAt: r.changedAt}
}

// set takes down what was learnt, tells of a transition, and has it written if it is news.
func (m *Manager) set(p podProbes, wanted v1alpha1.ContainerProbe, learnt record, now time.Time) {
	if !m.note(p, wanted, learnt, now) {
		return
	}
	if kind, reason, told := transition(learnt.state); told {
		m.config.Events.Event(aboutContainer(p, wanted.ContainerName), kind, reason,
			result.Cut(fmt.Sprintf("Probe %s of container %s: %s", wanted.Name, wanted.ContainerName, learnt.message), result.MaxMessage))
	}
}

// note reports whether the state is another than before.
func (m *Manager) note(p podProbes, wanted v1alpha1.ContainerProbe, learnt record, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := m.ledger.of(p).probes
	before := records[wanted.Name]
	if before == nil {
		before = &record{state: v1alpha1.ProbeUnknown}
		if m.object != nil {
			if state, ok := published(m.object.Status, p.uid, wanted.Name); ok {
				before = recordOf("", state)
			}
		}
	}
	if before.state == learnt.state {
		learnt.changedAt = before.changedAt
	} else if learnt.changedAt.IsZero() {
		learnt.changedAt = now
	}
	if learnt.probedAt.IsZero() {
		learnt.probedAt = now
	}
	if before.state == learnt.state && before.message == learnt.message {
		learnt.probedAt = before.probedAt
	}
	records[wanted.Name] = &learnt
	switch {
	case before.state != learnt.state, learnt.ended && !before.ended:
		m.writeSoon()
	case before.message != learnt.message:
		m.writeLazily()
	}
	return before.state != learnt.state
}

// publish writes the status when it is due, until ctx ends.
func (m *Manager) publish(ctx context.Context, api API) {
	for {
		m.mu.Lock()
		pause := time.Hour
		if !m.writer.due.IsZero() {
			pause = time.Until(m.writer.due)
		}
		m.mu.Unlock()
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-m.late:
		case <-timer.C:
			m.flush(ctx, api)
		}
		timer.Stop()
	}
}

// flush writes the status if it differs from the one that is there.
func (m *Manager) flush(ctx context.Context, api API) {
	m.mu.Lock()
	now := time.Now()
	object, status := m.object, m.ledger.status(now)
	if m.writer.due.IsZero() || !m.looked || object == nil {
		m.writer.due = time.Time{}
		m.mu.Unlock()
		return
	}
	m.writer.due = time.Time{}
	if until := m.ledger.hidden(now); !until.IsZero() {
		m.writeAfter(until.Sub(now), m.pace())
	}
	m.mu.Unlock()
	status, cut, err := fit(status, maxStatus)
	if err == nil && same(object.Status, status) {
		return
	}
	var stored *v1alpha1.NodePodProbe
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		stored, err = api.WriteStatus(ctx, object, status)
	}
	if ctx.Err() != nil && err != nil {
		return
	}
	m.metrics.wrote(err)
	m.wrote(stored, cut, err)
}

// wrote draws the consequences of an attempt.
func (m *Manager) wrote(stored *v1alpha1.NodePodProbe, cut int, err error) {
	if err == nil {
		m.sayCut(cut)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &m.writer
	w.last = time.Now()
	if err == nil {
		w.retry, w.said = 0, ""
		if m.object != nil && stored.UID == m.object.UID && newer(stored, m.object) {
			if stored.Generation != m.object.Generation {
				m.specStale = true
				m.wakeUp()
			}
			m.object = stored
		}
		return
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		m.config.Logger.Debug("the NodePodProbe is gone or another", "node", m.config.Node, "err", err)
	} else if err.Error() != w.said {
		w.said = err.Error()
		m.config.Logger.Warn("probe results not written, trying again", "node", m.config.Node, "err", err)
	}
	w.retry = min(max(2*w.retry, firstRetry), lastRetry)
	w.due = time.Time{}                             // what changed meanwhile waits too
	m.writeAfter(settle, w.retry+rand.N(w.retry/4)) //nolint:gosec // jitter, not a secret
}

// sayCut tells once that messages are shorter than they could be.
func (m *Manager) sayCut(cut int) {
	m.mu.Lock()
	before := m.writer.cut
	m.writer.cut = cut
	m.mu.Unlock()
	if cut < result.MaxMessage && cut != before {
		m.config.Events.Event(m.aboutObject(), corev1.EventTypeWarning, eventCut,
			fmt.Sprintf("The status would be larger than %d KiB: messages are cut to %d bytes", maxStatus>>10, cut))
	}
}
