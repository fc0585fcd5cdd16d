package node

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/stale"
	"github.com/refit-project/refit/probe/node/probespec"
	"github.com/refit-project/refit/probe/node/probestatus"
	"github.com/refit-project/refit/probe/turns"
)

// Reasons of Events. The first two are also used by OpenKruise.
const (
	eventSucceeded = "KruiseProbeSucceeded"
	eventFailed    = "KruiseProbeFailed"
	eventIgnored   = "ProbeIgnored"
	eventCut       = "ProbeMessagesCut"
)

// unknownGrace is how long the watch of pods may lag behind the watch of the NodePodProbe.
const unknownGrace = 10 * time.Second

// Manager runs a worker for each probe of the NodePodProbe whose container runs.
type Manager struct {
	config  Config
	metrics *metrics
	synced  cache.InformerSynced   // true when the initial NodePodProbe has been processed
	wake    chan struct{}          // holds one element if there is something to reconcile
	writer  *result.Writer[string] // writes the status

	mu        sync.Mutex
	object    *v1alpha1.NodePodProbe // newest known version, or nil
	specStale bool
	stale     map[types.UID]bool
	ended     map[types.UID]map[string]bool // instances that the runtime has reported as ended
	ledger    probestatus.Ledger
	looked    bool // the ledger has been filled for this object
	cut       int  // the length to which messages were last cut
	delay     turns.Delay
	delayed   string // the message in the last Event; empty if the probes were on time
	pruned    bool   // the CRD drops the conditions of the status, as OpenKruise's does

	turns *turns.Queue  // for exec probes
	slot  atomic.Int64  // for network probes, a time.Duration
	phase time.Duration // of the slots

	// Only used by Run's goroutine.
	pods  map[types.UID]*podAtWork
	calls sync.WaitGroup // execs in progress
}

// objectChanged stores the NodePodProbe from the watch; nil means that it was deleted.
func (m *Manager) objectChanged(object *v1alpha1.NodePodProbe) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.object
	switch {
	case object == nil || before == nil || object.UID != before.UID:
		m.specStale, m.looked = true, false
	case !stale.Newer(object.ResourceVersion, before.ResourceVersion): // the result of our own write was faster
		return
	default:
		m.specStale = m.specStale || object.Generation != before.Generation
	}
	m.object = object
	m.restoreDelay()
	if m.specStale {
		m.wakeUp()
	}
	if object != nil && m.looked && !probestatus.Same(object.Status, m.status(object, time.Now())) {
		m.writeLazily() // another client has written it, or it is a new object
	}
}

// podChanged records that a pod of the node has changed or is gone.
func (m *Manager) podChanged(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.object == nil {
		return
	}
	m.stale[uid] = true
	m.wakeUp()
}

// ContainerEvent must be called with every event of the container runtime. Events report the end of a container about a
// second before the pod's status does.
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

// wakeUp makes Run reconcile. The caller holds mu, as for all methods that use fields guarded by mu and do not say
// otherwise.
func (m *Manager) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run runs probes until ctx ends, and returns when all its goroutines have ended.
func (m *Manager) Run(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { m.config.NodePodProbe.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), m.config.Pods.HasSynced, m.synced) {
		return nil
	}
	background.Go(func() { _ = m.writer.Run(ctx) }) // it returns no error
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

// reconcile starts and stops workers as the spec requires, and returns when to reconcile again without an event.
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
			err := m.config.Guard.Do("probes", p.subject(), func() error {
				starts = append(starts, m.inspect(ctx, p, now)...)
				return nil
			})
			if err != nil {
				m.reportRefused(p, []error{err})
			}
		}
	}
	m.launch(ctx, starts)
	m.tune()
	m.mu.Lock()
	if !m.looked && !m.specStale {
		m.looked = true
		if m.object != nil && !probestatus.Same(m.object.Status, m.status(m.object, time.Now())) {
			m.writeSoon() // probes have been removed, or the written object has been replaced by another one
		}
	}
	m.mu.Unlock()
	return again
}

// read stores the entries of a spec.
func (m *Manager) read(object *v1alpha1.NodePodProbe) {
	entries := map[types.UID]probespec.Pod{}
	if object != nil {
		_, err := guard.Sift(m.config.Guard, "probes", object.Spec.PodProbes, subjectOf, func(pods []v1alpha1.PodProbe) {
			entries = probespec.Read(v1alpha1.NodePodProbeSpec{PodProbes: pods})
		})
		if err != nil {
			m.config.Logger.Error("the NodePodProbe cannot be read: its probes stay as they are", "err", err)
			return
		}
	}
	for uid, p := range m.pods {
		if _, ok := entries[uid]; !ok {
			m.drop(p)
			m.reportRefused(p, nil)
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

// drop stops the probes of a pod and removes their results.
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

// reportRefused sends an Event about probes that cannot be run, once for the same errors.
func (m *Manager) reportRefused(p *podAtWork, errs []error) {
	m.metrics.ignored.Add(float64(len(errs) - p.errs))
	p.errs = len(errs)
	reason := ""
	if len(errs) > 0 {
		reason = probespec.Describe(p.Key(), errs)
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
