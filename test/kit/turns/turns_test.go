package turns_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/test/kit/turns"
)

const (
	manager turns.Parts = 1 << iota
	node
	crd
)

// test is one that takes a second, and another one after an exchange if there is one.
type test struct{ first, then turns.Claims }

// run runs tests in their order and returns how long all of them took, and the errors.
func run(t *testing.T, limit int, tests ...test) (took time.Duration, failed error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := turns.New(limit, len(tests))
		var mu sync.Mutex
		has := map[int]turns.Claims{}
		// during is a second in which nobody may have claims that exclude these.
		during := func(i int, c turns.Claims) {
			mu.Lock()
			for _, other := range has {
				if c.Excludes(other) {
					t.Errorf("%+v beside %+v", c, other)
				}
			}
			has[i] = c
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			delete(has, i)
			mu.Unlock()
		}
		began := time.Now()
		var work sync.WaitGroup
		for i, one := range tests {
			work.Go(func() {
				turn, err := s.Begin(t.Context(), i, one.first)
				defer turn.End()
				if err == nil {
					during(i, one.first)
				}
				if err == nil && one.then != (turns.Claims{}) {
					if err = turn.Exchange(t.Context(), one.then); err == nil {
						during(i, one.then)
					}
				}
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			})
		}
		work.Wait()
		took = time.Since(began)
	})
	return took, failed
}

func TestOnlyTestsWithContraryClaimsWaitForEachOther(t *testing.T) {
	t.Parallel()
	needs := func(p turns.Parts) test { return test{first: turns.Claims{Needs: p}} }
	changes := func(p, needs turns.Parts) test { return test{first: turns.Claims{Changes: p, Needs: needs}} }
	without := test{first: turns.Claims{Needs: manager}, then: turns.Claims{Away: manager}}
	for name, tc := range map[string]struct {
		limit int
		tests []test
		want  time.Duration
	}{
		"the same needs":                          {limit: 8, tests: []test{needs(manager), needs(manager), needs(manager | node)}, want: time.Second},
		"other parts":                             {limit: 8, tests: []test{changes(manager, node), changes(crd, node), needs(node)}, want: time.Second},
		"one changes what another needs":          {limit: 8, tests: []test{changes(manager, 0), needs(manager)}, want: 2 * time.Second},
		"two change the same":                     {limit: 8, tests: []test{changes(node, 0), changes(node, 0), changes(node, 0)}, want: 3 * time.Second},
		"a limit":                                 {limit: 2, tests: []test{needs(node), needs(node), needs(node)}, want: 2 * time.Second},
		"all take the manager away at once":       {limit: 8, tests: []test{without, without, without}, want: 2 * time.Second},
		"who needs it waits until it is back":     {limit: 2, tests: []test{without, without, needs(manager)}, want: 3 * time.Second},
		"one changes what others have taken away": {limit: 8, tests: []test{without, {first: turns.Claims{Needs: manager}, then: turns.Claims{Changes: manager}}}, want: 3 * time.Second},
		"nobody has to be there":                  {limit: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took, err := run(t, tc.limit, tc.tests...)
			if err != nil || took != tc.want {
				t.Errorf("took %s, %v, want %s", took, err, tc.want)
			}
		})
	}
}

// Two tests that keep what the other one waits for end with an error, not with the timeout of all tests.
func TestTestsThatWaitForEachOtherFail(t *testing.T) {
	t.Parallel()
	took, err := run(t, 8,
		test{first: turns.Claims{Needs: manager | node}, then: turns.Claims{Needs: manager, Changes: node}},
		test{first: turns.Claims{Needs: manager | node}, then: turns.Claims{Changes: manager, Needs: node}},
	)
	if !errors.Is(err, turns.ErrStuck) || took != time.Second {
		t.Errorf("%v after %s, want %v", err, took, turns.ErrStuck)
	}
}

// A test that is ended while it waits leaves no claim.
func TestCanceledTestLeavesItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := turns.New(1, 0)
		first, err := s.Begin(t.Context(), 0, turns.Claims{Changes: node})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		second, err := s.Begin(ctx, 1, turns.Claims{Needs: node})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("began with %v", err)
		}
		second.End()
		first.End()
		third, err := s.Begin(t.Context(), 2, turns.Claims{Changes: node})
		if err != nil || third.Claims().Changes != node {
			t.Errorf("has %+v, %v", third.Claims(), err)
		}
	})
}

// Whatever the claims, all tests end, and no two with contrary claims run at a time, unless they wait for each other.
func TestAnyClaimsLetAllTestsEnd(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	claims := func() turns.Claims {
		var c turns.Claims
		for _, p := range []turns.Parts{manager, node, crd} {
			switch random.IntN(5) {
			case 0, 1:
				c.Needs |= p
			case 2:
				c.Changes |= p
			case 3:
				c.Away |= p
			}
		}
		return c
	}
	for range 300 {
		tests := make([]test, 1+random.IntN(8))
		for i := range tests {
			tests[i].first = claims()
			if random.IntN(3) == 0 {
				tests[i].then = claims()
			}
		}
		if _, err := run(t, 1+random.IntN(4), tests...); err != nil && !errors.Is(err, turns.ErrStuck) {
			t.Errorf("%+v: %v", tests, err)
		}
	}
}
