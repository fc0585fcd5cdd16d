package node

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/node/execprobe"
	"github.com/refit-project/refit/probe/node/probespec"
	"github.com/refit-project/refit/probe/node/probestatus"
	"github.com/refit-project/refit/probe/turns"
)

// podAtWork is an entry of the spec and the state of its probes.
type podAtWork struct {
	probespec.Pod
	firstSeen time.Time
	known     bool // it is, or was, a pod of this node
	reported  bool // an Event has said that it is not a pod of this node
	errs      int
	reason    string // description of the refused probes in the last Event
	workers   map[string]*running
}

// running is a probe with its worker.
type running struct {
	wanted v1alpha1.ContainerProbe
	where  probespec.Container
	ip     string
	busy   chan struct{} // Busy of its Execer
	worker *probe.Worker
}

// subject returns the pod as the subject of a guard.
func (p *podAtWork) subject() guard.Subject {
	return guard.Named(guard.Object{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)})
}

// subjectOf returns the pod of an entry as the subject of a guard.
func subjectOf(entry v1alpha1.PodProbe) guard.Subject {
	return guard.Named(guard.Object{Kind: "Pod", Namespace: entry.Namespace, Name: entry.Name, UID: entry.UID})
}

func (p *podAtWork) owner() turns.Owner { return turns.Owner{Namespace: p.Namespace, Pod: p.Name} }

func isExec(p v1alpha1.ContainerProbe) bool { return p.Probe.Exec != nil }

// start is a worker to start.
type start struct {
	pod  *podAtWork
	one  *running
	spec probe.Spec
}

// spread is how many probes that begin together run for the first time per second.
const spread = 40

// inspect compares a pod with its probes and returns the workers to start.
func (m *Manager) inspect(ctx context.Context, p *podAtWork, now time.Time) []start {
	pod := m.pod(p.Namespace, p.Name)
	if pod == nil || pod.UID != p.UID || pod.Spec.NodeName != m.config.Node {
		m.drop(p)
		if !p.known && !now.Before(p.firstSeen.Add(unknownGrace)) {
			p.reported = true
			m.reportRefused(p, []error{fmt.Errorf("no pod of this name and UID %.64q is on node %s", p.UID, m.config.Node)})
		}
		return nil
	}
	p.known, p.reported = true, false
	errs := slices.Clone(p.Refused)
	var starts []start
	kept := map[string]bool{}
	for _, wanted := range p.Probes {
		next, at, err := m.adjust(ctx, p, pod, wanted)
		if err != nil {
			errs = append(errs, fmt.Errorf("probe %q: %w", wanted.Name, err))
		}
		if next != nil {
			starts = append(starts, *next)
		}
		kept[wanted.Name] = at
	}
	m.keep(p, pod, kept)
	m.reportRefused(p, errs)
	return starts
}

// keep stops and forgets the other probes. It also forgets runtime events about ended containers when the pod's status
// shows their end.
func (m *Manager) keep(p *podAtWork, pod *corev1.Pod, kept map[string]bool) {
	for name := range p.workers {
		if !kept[name] {
			m.stop(p, name)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	records := m.ledger.Known(p.UID)
	for name := range records {
		if !kept[name] {
			delete(records, name)
			m.writeSoon()
		}
	}
	for id := range m.ended[p.UID] {
		if !claimsRunning(pod, id) {
			delete(m.ended[p.UID], id)
		}
	}
}

func claimsRunning(pod *corev1.Pod, id string) bool {
	claims := func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil && strings.HasSuffix(s.ContainerID, "://"+id)
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, claims) || slices.ContainsFunc(pod.Status.InitContainerStatuses, claims)
}

// adjust runs a probe while its container runs. It returns the worker to start, or nil, and whether there is anything
// to report for the probe.
func (m *Manager) adjust(ctx context.Context, p *podAtWork, pod *corev1.Pod, wanted v1alpha1.ContainerProbe) (*start, bool, error) {
	where, found := probespec.ContainerOf(pod, wanted.ContainerName)
	ip := probespec.Address(pod)
	switch {
	case !found:
		return nil, false, fmt.Errorf("the pod has no container %q", wanted.ContainerName)
	case where.Instance == "":
		return nil, false, nil // the container was never started
	case !where.Running || m.hasEnded(p, where.Instance):
		m.stop(p, wanted.Name)
		// The message of kruise-daemon.
		m.set(p.Pod, wanted, probestatus.Record{Instance: where.Instance, State: v1alpha1.ProbeFailed, Ended: true,
			Message: "Container(" + wanted.ContainerName + ") is Non-running"}, time.Now())
		return nil, true, nil
	case probespec.NeedsAddress(wanted.Probe.Probe) && ip == "":
		return nil, false, nil
	}
	now := p.workers[wanted.Name]
	if now != nil && (now.where.Instance != where.Instance || isExec(now.wanted) != isExec(wanted)) {
		m.stop(p, wanted.Name)
		now = nil
	}
	if now != nil && now.ip == ip && reflect.DeepEqual(now.where.Ports, where.Ports) && reflect.DeepEqual(now.wanted, wanted) {
		return nil, true, nil
	}
	next := &running{wanted: wanted, where: where, ip: ip, busy: make(chan struct{}, 1)}
	if now != nil {
		next.busy = now.busy
	}
	spec, err := m.specFor(ctx, p, pod, next)
	if err != nil {
		return nil, false, err
	}
	if now != nil {
		next.worker = now.worker
		p.workers[wanted.Name] = next
		return nil, true, next.worker.Update(spec)
	}
	spec.Known = m.begin(p.Pod, wanted, where)
	return &start{p, next, spec}, true, nil
}

func (m *Manager) hasEnded(p *podAtWork, instance string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, id, _ := strings.Cut(instance, "://")
	return m.ended[p.UID][id]
}

func (m *Manager) specFor(ctx context.Context, p *podAtWork, pod *corev1.Pod, r *running) (probe.Spec, error) {
	_, id, _ := strings.Cut(r.where.Instance, "://")
	uid, container := kubelet.RuntimePodUID(pod), r.wanted.ContainerName
	exec := &execprobe.Execer{
		Owns:    func(c *cri.Container) bool { return c.BelongsTo(uid, p.Namespace, p.Name, container) },
		Runtime: m.config.Runtime, ID: id, Calls: ctx, Work: &m.calls, Busy: r.busy, Queue: m.turns, Owner: p.owner(),
		Guard: m.config.Guard, Subject: p.subject(),
	}
	spec, err := probespec.Spec(r.wanted.Probe.Probe, probe.Place{Host: r.ip, Ports: r.where.Ports, Execer: exec})
	if err != nil {
		return spec, err
	}
	if probespec.NeedsAddress(r.wanted.Probe.Probe) {
		if spec.Prober, err = m.addressed(spec.Prober, pod, r.ip); err != nil {
			return spec, err
		}
	}
	exec.Timeout = spec.Timeout
	spec.Since = r.where.StartedAt
	spec.Prober = counted{spec.Prober, probespec.Kind(r.wanted.Probe.Probe), m.metrics}
	spec.Guard, spec.Subject = m.config.Guard, p.subject()
	spec.Align = m.alignment(r.wanted.Probe.Probe)
	if isExec(r.wanted) {
		spec.Admit = exec.Admit
		exec.Waited = func(wait time.Duration) { m.observeDelay(wait, spec.Period) }
	}
	return spec, nil
}

// launch starts workers with jitter, so that their probes do not all run at the same moment.
func (m *Manager) launch(ctx context.Context, starts []start) {
	for _, s := range starts {
		s.spec.Jitter = min(s.spec.Period, time.Duration(len(starts))*time.Second/spread)
		if isExec(s.one.wanted) {
			m.turns.Join(s.pod.owner())
		}
		worker, err := probe.Start(ctx, s.spec, m.reporter(s))
		if err != nil { // cannot happen: specOf has validated it
			m.config.Logger.Error("probe not started", "pod", s.pod.Key(), "container", s.one.wanted.ContainerName, "err", err)
			if isExec(s.one.wanted) {
				m.turns.Leave(s.pod.owner())
			}
			continue
		}
		s.one.worker = worker
		s.pod.workers[s.one.wanted.Name] = s.one
		m.metrics.running.Inc()
	}
}

// reporter returns a function that handles each result of a worker, in the worker's goroutine.
func (m *Manager) reporter(s start) func(probe.Result) {
	entry, wanted, instance := s.pod.Pod, s.one.wanted, s.one.where.Instance
	return func(r probe.Result) {
		m.metrics.late(r.Late)
		m.set(entry, wanted, probestatus.Record{
			Instance: instance, State: v1alpha1.ProbeState(r.State), Message: r.Message, ProbedAt: r.ProbedAt, ChangedAt: r.ChangedAt,
		}, time.Now())
	}
}

func (m *Manager) stop(p *podAtWork, name string) {
	one := p.workers[name]
	if one == nil {
		return
	}
	one.worker.Stop()
	if isExec(one.wanted) {
		m.turns.Leave(p.owner())
	}
	delete(p.workers, name)
	m.metrics.running.Dec()
}
