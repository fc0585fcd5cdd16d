package podprobes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/daemon/podprobes/probespec"
	"github.com/refit-project/refit/daemon/podprobes/probestatus"
	"github.com/refit-project/refit/probe/turns"
	"github.com/refit-project/refit/result"
)

// Reasons of Events. The first two are OpenKruise's.
const (
	eventSucceeded = "KruiseProbeSucceeded"
	eventFailed    = "KruiseProbeFailed"
	eventIgnored   = "ProbeIgnored"
	eventCut       = "ProbeMessagesCut"
)

// unknownGrace is how long the watch of pods may be behind that of the NodePodProbe.
const unknownGrace = 10 * time.Second

// Manager keeps a worker for each probe of the NodePodProbe whose container runs.
type Manager struct {
	config  Config
	metrics *metrics
	synced  cache.InformerSynced   // what the NodePodProbe's cache was filled with has been taken over
	wake    chan struct{}          // holds one: there is something to reconcile
	writer  *result.Writer[string] // of the status

	mu        sync.Mutex
	object    *v1alpha1.NodePodProbe // newest seen; nil: none
	specStale bool
	stale     map[types.UID]bool
	ended     map[types.UID]map[string]bool // instances that the runtime has reported as ended
	ledger    probestatus.Ledger
	looked    bool // the ledger has been filled for this object
	cut       int  // what messages were cut to last
	delay     turns.Delay
	delayed   string // the message in the last Event; empty: on time
	pruned    bool   // the CRD, which is OpenKruise's, drops the conditions of the status

	turns *turns.Queue  // of exec probes
	slot  atomic.Int64  // of network probes, a time.Duration
	phase time.Duration // of the slots

	// Of Run's goroutine alone.
	pods  map[types.UID]*podAtWork
	calls sync.WaitGroup // execs under way
}

// objectChanged takes over the NodePodProbe as the watch has brought it; nil: deleted.
func (m *Manager) objectChanged(object *v1alpha1.NodePodProbe) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.object
	switch {
	case object == nil || before == nil || object.UID != before.UID:
		m.specStale, m.looked = true, false
	case !newer(object, before): // it was overtaken by the answer to our own write
		return
	default:
		m.specStale = m.specStale || object.Generation != before.Generation
	}
	m.object = object
	m.recallDelay()
	if m.specStale {
		m.wakeUp()
	}
	if object != nil && m.looked && !probestatus.Same(object.Status, m.status(object, time.Now())) {
		m.writeLazily() // another client has written it, or it is another object
	}
}

// newer reports whether a is a later version than b of an object; one that cannot be compared is.
func newer(a, b *v1alpha1.NodePodProbe) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}

// podChanged notes that a pod of the node has changed or is gone.
func (m *Manager) podChanged(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.object == nil {
		return
	}
	m.stale[uid] = true
	m.wakeUp()
}

// ContainerEvent is to be called with every event of the container runtime: that a container has stopped is known here
// a second before the pod's status says so.
func (m *Manager) ContainerEvent(event cri.Event) {
	if event.Relist || event.Type != cri.EventStopped {
		return
	}
	pod := m.pod(event.PodNamespace, event.PodName)
	if pod == nil {
		return
	}
	id := event.ContainerID
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ledger[pod.UID] == nil {
		return
	}
	if m.ended[pod.UID] == nil {
		m.ended[pod.UID] = map[string]bool{}
	}
	m.ended[pod.UID][id] = true
	m.stale[pod.UID] = true
	m.wakeUp()
}

// wakeUp and the other methods that say nothing of it are called with mu held, if they touch what it guards.
func (m *Manager) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run runs probes until ctx ends, and returns when all its goroutines have.
func (m *Manager) Run(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { m.config.NodePodProbe.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), m.config.Pods.HasSynced, m.synced) {
		return nil
	}
	background.Go(func() { _ = m.writer.Run(ctx) }) // it has no error
	defer m.calls.Wait()
	defer m.stopAll()
	for {
		timer := time.NewTimer(m.reconcile(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-m.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (m *Manager) stopAll() {
	for _, p := range m.pods {
		for name := range p.workers {
			m.stop(p, name)
		}
	}
}

// reconcile brings the workers to what is wanted, and returns when to look again without a reason.
func (m *Manager) reconcile(ctx context.Context) time.Duration {
	m.mu.Lock()
	object, all, stale := m.object, m.specStale, m.stale
	m.specStale, m.stale = false, map[types.UID]bool{}
	m.mu.Unlock()
	if all {
		m.read(object)
	}
	now := time.Now()
	var starts []start
	again := time.Hour
	for uid, p := range m.pods {
		if waits := p.firstSeen.Add(unknownGrace).Sub(now); !p.known && !p.reported && waits > 0 {
			again = min(again, waits)
		}
		if all || stale[uid] || !p.known && !p.reported {
			starts = append(starts, m.look(ctx, p, now)...)
		}
	}
	m.launch(ctx, starts)
	m.tune()
	m.mu.Lock()
	if !m.looked && !m.specStale {
		m.looked = true
		if m.object != nil && !probestatus.Same(m.object.Status, m.status(m.object, time.Now())) {
			m.writeSoon() // probes have been taken out, or another object has taken the place of the one that was written
		}
	}
	m.mu.Unlock()
	return again
}

// read takes over a spec.
func (m *Manager) read(object *v1alpha1.NodePodProbe) {
	entries := map[types.UID]probespec.Pod{}
	if object != nil {
		entries = probespec.Read(object.Spec)
	}
	for uid, p := range m.pods {
		if _, ok := entries[uid]; !ok {
			m.drop(p)
			m.fault(p, nil)
			delete(m.pods, uid)
		}
	}
	for uid, entry := range entries {
		p := m.pods[uid]
		if p == nil {
			p = &podAtWork{firstSeen: time.Now(), workers: map[string]*running{}}
			m.pods[uid] = p
		}
		p.Pod = entry
	}
}

// drop stops the probes of a pod and forgets their results.
func (m *Manager) drop(p *podAtWork) {
	for name := range p.workers {
		m.stop(p, name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ended, p.UID)
	if m.ledger[p.UID] != nil {
		delete(m.ledger, p.UID)
		m.writeSoon()
	}
}

// fault records an Event about probes that cannot be run, once for the same faults.
func (m *Manager) fault(p *podAtWork, faults []error) {
	m.metrics.ignored.Add(float64(len(faults) - p.faults))
	p.faults = len(faults)
	reason := ""
	if len(faults) > 0 {
		reason = probespec.Describe(p.Key(), faults)
	}
	if reason == p.reason {
		return
	}
	p.reason = reason
	if reason != "" {
		m.config.Logger.Warn("some probes of the pod are not run", "pod", p.Key(), "err", reason)
		m.config.Events.Event(m.aboutObject(), corev1.EventTypeWarning, eventIgnored, reason)
	}
}

func (m *Manager) aboutObject() corev1.ObjectReference {
	about := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion().String(), Kind: "NodePodProbe", Name: m.config.Node}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.object != nil {
		about.UID = m.object.UID
	}
	return about
}
