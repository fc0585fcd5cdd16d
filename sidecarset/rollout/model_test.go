package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// model is a cluster with the pods of one SidecarSet, whose spec has a version.
type model struct {
	t        *testing.T
	random   *rand.Rand
	strategy rollout.Strategy
	fleet    *rollout.Fleet
	pods     map[types.NamespacedName]*modelPod
	version  int
	faulty   map[int]bool
	now      time.Time
	created  int
}

type modelPod struct {
	rollout.Pod
	version int
	// stopped says that the pod was available when its update began, and has not become available since. One that was ready after it, is not ready for
	// a reason of its own and is of an older spec again no longer counts.
	stopped bool
	denied  bool
	refused int         // writes in a row
	updates map[int]int // by version
}

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	m := &model{t: t, random: random, pods: map[types.NamespacedName]*modelPod{}, faulty: map[int]bool{}, now: now}
	m.strategy.MaxUnavailable = number(1 + random.IntN(4))
	m.strategy.MinReady = time.Duration(random.IntN(3)) * time.Second
	if random.IntN(2) == 0 {
		m.strategy.WorkloadMaxUnavailable = number(1)
	}
	if random.IntN(3) == 0 {
		m.strategy.Scatter = []rollout.Term{{Key: "app", Value: "*"}}
	}
	m.fleet = rollout.NewFleet(m.strategy.Scatter)
	for range 3 + random.IntN(15) {
		m.create()
	}
	return m
}

func (m *model) create() {
	m.created++
	workload := fmt.Sprint("w", m.random.IntN(4))
	p := &modelPod{version: m.version, updates: map[int]int{}, Pod: rollout.Pod{
		Key: keyOf(m.created), Workload: workload, Labels: map[string]string{"app": workload}, Ready: m.random.IntN(6) > 0,
		Scheduled: true, Phase: corev1.PodRunning, Created: m.now,
	}}
	m.ready(p, p.Ready)
	m.pods[p.Key] = p
	m.see(p)
}

func (m *model) ready(p *modelPod, ready bool) {
	p.Ready, p.ReadySince = ready, time.Time{}
	if ready {
		p.ReadySince = m.now
	}
}

// see sets a pod in the fleet.
func (m *model) see(p *modelPod) {
	p.State = rollout.Updated
	if p.version != m.version {
		p.State = rollout.Outdated
		p.stopped = p.stopped && (p.Ready || p.InFlight || p.UnderWay)
	}
	m.fleet.Set(p.Pod)
}

func (m *model) spec(version int) {
	m.version = version
	for _, p := range m.pods {
		m.see(p)
	}
}

// round is one look of the controller.
func (m *model) round() {
	m.t.Helper()
	seen := map[types.NamespacedName]bool{}
	for _, key := range m.fleet.Select(&m.strategy, m.now, nil).Pods {
		p := m.pods[key]
		if seen[key] || p.version == m.version {
			m.t.Errorf("pod %s is updated twice to version %d", key, m.version)
		}
		seen[key] = true
		if p.denied {
			// The controller doubles the delay as well: several pods that are retried at a fixed rate take all turns.
			p.RetryAt = m.now.Add(time.Second << min(p.refused, 8))
			p.refused++
			m.see(p)
			continue
		}
		m.begins(p)
		if p.Ready && !p.InFlight && !p.UnderWay {
			m.stops(p)
			p.stopped = true
		}
		p.version, p.InFlight, p.Failed, p.refused = m.version, true, false, 0
		p.updates[m.version]++
		m.see(p)
	}
	stopped := 0
	for _, p := range m.pods {
		if p.stopped {
			stopped++
		}
	}
	if limit := m.strategy.MaxUnavailable.IntValue(); stopped > limit {
		m.t.Errorf("%d pods are stopped at once, with maxUnavailable %d", stopped, limit)
	}
}

// begins checks that no more pods are under way than may be unavailable, also of those that are not ready, and whoever has begun it.
func (m *model) begins(p *modelPod) {
	m.t.Helper()
	limit := m.strategy.MaxUnavailable.IntValue()
	busy := 0
	for _, other := range m.pods {
		if other.InFlight || other.UnderWay || other == p {
			busy++
		}
	}
	if !p.InFlight && !p.Stuck && busy > limit {
		m.t.Errorf("pod %s is begun, and %d are under way, with maxUnavailable %d", p.Key, busy, limit)
	}
}

// stops checks that others of the workload are left when a pod that is ready is updated.
func (m *model) stops(p *modelPod) {
	m.t.Helper()
	others, stopped := 0, 0
	for _, other := range m.pods {
		if other.Workload == p.Workload && other.Key != p.Key {
			others++
			if other.stopped {
				stopped++
			}
		}
	}
	if others > 0 && stopped == others {
		m.t.Errorf("pod %s is stopped, and all %d others of %s are", p.Key, others, p.Workload)
	}
	if m.strategy.WorkloadMaxUnavailable != nil && stopped > 0 {
		m.t.Errorf("pod %s is stopped, and %d others of %s, with 1 allowed", p.Key, stopped, p.Workload)
	}
}

// kubelet lets a second pass; some pods come further.
func (m *model) kubelet(likely int) {
	m.now = m.now.Add(time.Second)
	for _, p := range m.pods {
		switch {
		case p.InFlight && m.faulty[p.version]:
			p.Failed = true
			m.ready(p, false)
		case p.InFlight && m.random.IntN(likely) == 0:
			p.InFlight, p.Failed = false, false
			m.ready(p, true)
		case p.InFlight:
			m.ready(p, false)
		case p.UnderWay && m.random.IntN(likely) == 0:
			p.UnderWay = false
			m.ready(p, true)
		case !p.Ready && m.random.IntN(likely) == 0:
			m.ready(p, true)
		}
		if p.Ready && !p.InFlight && !m.now.Before(p.ReadySince.Add(m.strategy.MinReady)) {
			p.stopped = false
		}
		m.see(p)
	}
}

// disturb is what happens in a cluster.
func (m *model) disturb() {
	switch m.random.IntN(10) {
	case 0:
		m.spec(m.random.IntN(4)) // also back to an earlier one
	case 1:
		m.faulty[m.version] = m.version != 0
		m.spec(m.version)
	case 2:
		for key := range m.pods {
			delete(m.pods, key)
			m.fleet.Delete(key)
			m.create()
			break
		}
	case 3:
		for _, p := range m.pods {
			p.denied = !p.denied
			break
		}
	case 4: // another controller begins
		for _, p := range m.pods {
			p.UnderWay = true
			m.see(p)
			break
		}
	case 5: // a dependency of all is away for a moment
		for _, p := range m.pods {
			m.ready(p, false)
			m.see(p)
		}
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	seeds := uint64(400)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, seed)
			for range 60 {
				m.round()
				m.kubelet(3)
				m.disturb()
			}
			// A rollback to a good image repairs all pods except those whose updates are always denied.
			m.faulty = map[int]bool{}
			m.spec(0)
			for range 400 {
				m.round()
				m.kubelet(1)
			}
			for key, p := range m.pods {
				if !p.denied && (p.version != 0 || p.InFlight) {
					t.Errorf("pod %s has version %d after the rollback, in flight %v", key, p.version, p.InFlight)
				}
			}
			if t.Failed() {
				t.Logf("strategy %+v", m.strategy)
			}
		})
	}
}

// What the fleet counts pod by pod is what counting all of them gives.
func TestCountsAgreeWithCountingAll(t *testing.T) {
	t.Parallel()
	m := newModel(t, 42)
	for range 300 {
		m.round()
		m.kubelet(3)
		m.disturb()
		var want rollout.Counts
		for _, p := range m.pods {
			want.Matched++
			if p.State == rollout.Updated {
				want.Updated++
			}
			if p.InFlight {
				want.InFlight++
			}
			if settled := p.Ready && !p.InFlight; settled {
				want.Ready++
				if p.State == rollout.Updated {
					want.UpdatedReady++
				}
			}
			if p.Failed {
				want.Failed++
				if p.State == rollout.Updated {
					want.FailedUpdated++
				}
			}
		}
		if got := m.fleet.Counts(); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}
