package turn_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/rollout/turn"
)

// A model of processes that write and list at the API server, each with a pod of its own. Every order of their steps is tried.

// stage is how far a process is.
type stage byte

const (
	begin stage = iota // has written nothing
	look               // has written, and has to list
	act                // has listed, and has to do what it decided
	out                // has taken its pod out
	done               // its pod serves again, and its claim is removed
	died               // it has ended before it took its pod out; its claim has expired
)

type process struct {
	stage stage
	next  turn.Step
	// what its pod shows
	claimed, holding bool
}

// world is one state of the model; it is comparable, so that each state is looked at once.
type world [3]process

type model struct {
	n, limit int
	// since of each process: clocks differ, so that any order is possible.
	since [3]int
	// hasty processes go on without the second look.
	hasty   bool
	seen    map[world]bool
	failure string
}

// steps are the states that a step of process i can lead to.
func (m *model) steps(w world, i int) []world {
	p := &w[i]
	before := w
	switch p.stage {
	case begin:
		p.stage, p.claimed = look, true
	case look:
		p.stage, p.next = act, m.decide(w, i)
	case act:
		m.carryOut(p)
	case out:
		*p = process{stage: done}
	default:
		return nil
	}
	after := []world{w}
	if before[i].stage == look || before[i].stage == act {
		dead := before
		dead[i] = process{stage: died}
		after = append(after, dead)
	}
	return after
}

func (m *model) carryOut(p *process) {
	switch {
	case p.next == turn.Go || m.hasty && p.next == turn.Hold:
		p.stage, p.holding = out, true
	default:
		p.stage, p.holding = look, p.next == turn.Hold
	}
}

func (m *model) decide(w world, i int) turn.Step {
	o := turn.Observation{Own: i, Limit: m.limit}
	for j := range m.n {
		p := turn.Pod{Pod: budget.Pod{Name: fmt.Sprint(j), Ready: true, Available: true}}
		if w[j].claimed {
			c := budget.NewClaim(p.Name, time.Unix(int64(m.since[j]), 0))
			c.Holding = w[j].holding
			p.Claim = &c
			if j != i && c.Holding {
				p.Available, p.UnderWay = false, true
			}
		}
		o.Pods = append(o.Pods, p)
	}
	return turn.Next(o).Step
}

// explore looks at all states that can be reached, and notes the first that must not be. It reports whether all processes can end.
func (m *model) explore(w world) {
	queue := []world{w}
	m.seen = map[world]bool{w: true}
	comesFrom := map[world][]world{}
	var ended []world
	for len(queue) > 0 && m.failure == "" {
		w, queue = queue[0], queue[1:]
		m.check(w)
		all := true
		for i := range m.n {
			all = all && (w[i].stage == done || w[i].stage == died)
			for _, next := range m.steps(w, i) {
				comesFrom[next] = append(comesFrom[next], w)
				if !m.seen[next] {
					m.seen[next] = true
					queue = append(queue, next)
				}
			}
		}
		if all {
			ended = append(ended, w)
		}
	}
	if m.failure == "" {
		m.endsFromEverywhere(ended, comesFrom)
	}
}

func (m *model) check(w world) {
	n := 0
	for i := range m.n {
		if w[i].stage == out {
			n++
		}
	}
	if n > m.limit {
		m.failure = fmt.Sprintf("%d pods are out of service: %+v", n, w)
	}
}

// endsFromEverywhere notes a state from which the processes cannot end.
func (m *model) endsFromEverywhere(ended []world, comesFrom map[world][]world) {
	reached := map[world]bool{}
	for len(ended) > 0 {
		w := ended[0]
		ended = ended[1:]
		if reached[w] {
			continue
		}
		reached[w] = true
		ended = append(ended, comesFrom[w]...)
	}
	for w := range m.seen {
		if !reached[w] {
			m.failure = fmt.Sprintf("no end is reached from %+v", w)
			return
		}
	}
}

func TestNoOrderOfStepsOfProcessesTakesOutMoreThanMayBe(t *testing.T) {
	t.Parallel()
	for _, since := range [][3]int{{1, 2, 3}, {3, 2, 1}, {2, 1, 3}, {2, 3, 1}, {1, 1, 1}, {2, 1, 1}} {
		for n := 2; n <= 3; n++ {
			for limit := 1; limit < n; limit++ {
				m := &model{n: n, limit: limit, since: since}
				m.explore(world{})
				if m.failure != "" {
					t.Errorf("%d processes, limit %d, since %v: %s", n, limit, since, m.failure)
				}
				if len(m.seen) < 20 {
					t.Errorf("only %d states", len(m.seen))
				}
			}
		}
	}
}

// The model detects processes that look only once.
func TestWithoutTheSecondLookTwoProcessesGoOn(t *testing.T) {
	t.Parallel()
	m := &model{n: 2, limit: 1, since: [3]int{1, 2}, hasty: true}
	if m.explore(world{}); m.failure == "" {
		t.Error("not noticed")
	}
}
