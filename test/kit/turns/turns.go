// Package turns lets tests run beside each other that change what other tests rely on: each claims the parts of a cluster that it
// needs, changes or takes away, and only tests with contrary claims wait for each other.
package turns

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Parts are things that a cluster has once, and that tests rely on: one bit for each.
type Parts uint

// Claims are what a test has to do with the parts of the cluster.
type Claims struct {
	Needs   Parts // others may need them too
	Changes Parts // others may not claim them at all
	Away    Parts // taken away, as others may do at the same time
}

// Excludes reports whether two tests may not have their claims at the same time.
func (c Claims) Excludes(other Claims) bool {
	return c.Changes&other.all() != 0 || other.Changes&c.all() != 0 || c.Away&other.Needs != 0 || other.Away&c.Needs != 0
}

func (c Claims) all() Parts { return c.Needs | c.Changes | c.Away }

// same are the claims that both have.
func (c Claims) same(other Claims) Claims {
	return Claims{Needs: c.Needs & other.Needs, Changes: c.Changes & other.Changes, Away: c.Away & other.Away}
}

// ErrStuck is returned when all tests that have begun wait for each other, so that none of them can go on.
var ErrStuck = errors.New("tests wait for each other's claims")

// Schedule says which tests run. It is safe for concurrent use.
type Schedule struct {
	limit int

	mu       sync.Mutex
	expected int
	waiting  []*Turn
	running  []*Turn // also those that wait for an exchange
}

// New returns a schedule for at most limit tests at a time. The first begins when so many tests are there as are expected, so that it
// is not the first of them by chance.
func New(limit, expected int) *Schedule { return &Schedule{limit: limit, expected: expected} }

// Turn is the part of a test in its schedule.
type Turn struct {
	schedule *Schedule
	rank     int
	begun    bool
	has      Claims
	wants    Claims
	answer   chan error // has a place for the answer to the claims that it wants
}

// Begin waits until a test may begin: when no other test has claims that exclude its own, and before tests of a higher rank. It returns
// the error of the context, or ErrStuck.
func (s *Schedule) Begin(ctx context.Context, rank int, claims Claims) (*Turn, error) {
	t := &Turn{schedule: s, rank: rank}
	return t, t.wait(ctx, claims)
}

// Exchange claims something else in the middle of a test. Until it has the new claims, the test has what is in both. It returns
// the error of the context, or ErrStuck.
func (t *Turn) Exchange(ctx context.Context, claims Claims) error { return t.wait(ctx, claims) }

// End ends the turn, whatever its state.
func (t *Turn) End() {
	s := t.schedule
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(other *Turn) bool { return other == t }
	s.running, s.waiting = slices.DeleteFunc(s.running, is), slices.DeleteFunc(s.waiting, is)
	s.next()
}

// Claims are what the test has.
func (t *Turn) Claims() Claims {
	t.schedule.mu.Lock()
	defer t.schedule.mu.Unlock()
	return t.has
}

func (t *Turn) wait(ctx context.Context, claims Claims) error {
	s := t.schedule
	answer := make(chan error, 1)
	s.mu.Lock()
	t.wants, t.has, t.answer = claims, t.has.same(claims), answer
	s.waiting = append(s.waiting, t)
	s.next()
	s.mu.Unlock()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next lets all go on that can: those in the middle of a test first, then by rank.
func (s *Schedule) next() {
	if len(s.waiting) < s.expected {
		return
	}
	s.expected = 0
	slices.SortStableFunc(s.waiting, func(a, b *Turn) int {
		if a.begun != b.begun {
			if a.begun {
				return -1
			}
			return 1
		}
		return a.rank - b.rank
	})
	var still []*Turn
	for i, t := range s.waiting {
		if !s.may(t, append(slices.Clone(still), s.waiting[i:]...)) {
			still = append(still, t)
			continue
		}
		if !t.begun {
			t.begun = true
			s.running = append(s.running, t)
		}
		t.has = t.wants
		t.answer <- nil
	}
	s.waiting = still
	if len(still) > 0 && len(s.running) > 0 && s.active(still) == 0 {
		for _, t := range still {
			t.answer <- ErrStuck
		}
		s.waiting = nil
	}
}

// may reports whether a turn gets what it wants. A test does not begin with claims that exclude what another one waits for in its
// middle: that one would wait until there is no other test.
func (s *Schedule) may(t *Turn, waiting []*Turn) bool {
	if slices.ContainsFunc(s.running, func(other *Turn) bool { return other != t && t.wants.Excludes(other.has) }) {
		return false
	}
	return t.begun || s.active(waiting) < s.limit && !slices.ContainsFunc(waiting, func(other *Turn) bool {
		return other.begun && t.wants.Excludes(other.wants)
	})
}

// active is how many tests have begun and do not wait.
func (s *Schedule) active(waiting []*Turn) int {
	n := 0
	for _, t := range s.running {
		if !slices.Contains(waiting, t) {
			n++
		}
	}
	return n
}
