package turns_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/probe/turns"
)

// Who has left, in whatever way, is no reason to keep a turn free.
func TestTurnsAreNotKeptForThoseWhoHaveLeft(t *testing.T) {
	t.Parallel()
	stays := turns.Owner{Namespace: "n", Pod: "stays"}
	for name, leaves := range map[string]func(t *testing.T, q *turns.Queue, gone turns.Owner){
		"at once": func(_ *testing.T, q *turns.Queue, gone turns.Owner) { q.Leave(gone) },
		"with a turn": func(t *testing.T, q *turns.Queue, gone turns.Owner) {
			turn, err := q.Take(t.Context(), gone)
			if err != nil {
				t.Error(err)
				return
			}
			q.Leave(gone)
			turn.End()
		},
		"while it waits": func(t *testing.T, q *turns.Queue, gone turns.Owner) {
			q.Join(stays)
			defer q.Leave(stays)
			first, err := q.Take(t.Context(), gone)
			if err != nil {
				t.Error(err)
				return
			}
			second, err := q.Take(t.Context(), stays)
			if err != nil {
				t.Error(err)
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			done := make(chan error)
			go func() {
				turn, err := q.Take(ctx, gone)
				if err == nil {
					turn.End()
				}
				done <- err
			}()
			synctest.Wait()
			q.Leave(gone)
			first.End() // which is the waiter's now
			second.End()
			if err := <-done; err != nil {
				t.Error(err)
			}
		},
	} {
		for _, gone := range []turns.Owner{{Namespace: "n", Pod: "gone"}, {Namespace: "gone", Pod: "x"}} {
			synctest.Test(t, func(t *testing.T) {
				q := turns.New(2, 100)
				q.Join(gone)
				leaves(t, q, gone)
				q.Join(stays)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for i := range 2 {
					if _, err := q.Take(ctx, stays); err != nil {
						t.Errorf("%s, %s: turn %d of 2: %v", name, gone.Namespace, i+1, err)
					}
				}
			})
		}
	}
}

// A probe that waits keeps the entry of its pod, which ends when it has given up.
func TestTurnsAreNotKeptForThoseWhoHaveLeftAndGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, stays, gone := turns.New(2, 100), turns.Owner{Namespace: "n", Pod: "stays"}, turns.Owner{Namespace: "n", Pod: "gone"}
		q.Join(stays)
		take := func(o turns.Owner) (*turns.Turn, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return q.Take(ctx, o)
		}
		for round := range 2 {
			var held []*turns.Turn
			for range 2 {
				turn, err := take(stays)
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				held = append(held, turn)
			}
			q.Join(gone)
			done := make(chan error)
			go func() {
				_, err := take(gone)
				done <- err
			}()
			synctest.Wait()
			q.Leave(gone)
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("round %d: %v", round, err)
			}
			for _, turn := range held {
				turn.End()
			}
		}
	})
}

// A probe that has given up waiting is not in the way of the next.
func TestWhoGivesUpGetsNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, o := turns.New(2, 100), turns.Owner{Namespace: "n", Pod: "a"}
		q.Join(o)
		var held []*turns.Turn
		for range 2 {
			turn, err := q.Take(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, turn)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Take(short, o); !errors.Is(err, context.DeadlineExceeded) || q.Load().Waiting != 0 {
			t.Errorf("%v, %+v", err, q.Load())
		}
		for _, turn := range held {
			turn.End()
		}
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		for i := range 2 {
			if _, err := q.Take(ctx, o); err != nil {
				t.Errorf("turn %d of 2: %v", i+1, err)
			}
		}
	})
}

// Of two that wait, the one that gives up is taken out, and the other gets its turn.
func TestWhoGivesUpIsTakenOutAndNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, o := turns.New(2, 100), turns.Owner{Namespace: "n", Pod: "a"}
		q.Join(o)
		var held *turns.Turn
		for range 2 {
			turn, err := q.Take(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			held = turn
		}
		patient, hasty := make(chan error, 1), make(chan error, 1)
		take := func(limit time.Duration, done chan<- error) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := q.Take(ctx, o)
			done <- err
		}
		go take(time.Minute, patient)
		synctest.Wait()
		go take(time.Second, hasty)
		if err := <-hasty; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one that gives up: %v", err)
		}
		held.End()
		if err := <-patient; err != nil {
			t.Errorf("the one that goes on waiting: %v", err)
		}
	})
}

// The next turn is for the namespace, and then the pod, that has the fewest, and among those for the one that has waited the longest.
func TestNextTurnIsForWhoHasTheFewest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ many, few, last turns.Owner }{
		"namespaces": {turns.Owner{Namespace: "many", Pod: "x"}, turns.Owner{Namespace: "few", Pod: "x"}, turns.Owner{Namespace: "last", Pod: "x"}},
		"pods":       {turns.Owner{Namespace: "n", Pod: "many"}, turns.Owner{Namespace: "n", Pod: "few"}, turns.Owner{Namespace: "n", Pod: "last"}},
	} {
		for range 5 { // the order of a map
			synctest.Test(t, func(t *testing.T) {
				q := turns.New(4, 100)
				for _, o := range []turns.Owner{tt.many, tt.few, tt.last} {
					q.Join(o)
				}
				held := map[turns.Owner]*turns.Turn{}
				for _, o := range []turns.Owner{tt.few, tt.many, tt.many, tt.last} {
					turn, err := q.Take(t.Context(), o)
					if err != nil {
						t.Fatal(err)
					}
					held[o] = turn
				}
				granted := make(chan turns.Owner, 3)
				for _, o := range []turns.Owner{tt.many, tt.few, tt.last} {
					go func() {
						if _, err := q.Take(t.Context(), o); err == nil {
							granted <- o
						}
					}()
				}
				synctest.Wait()
				held[tt.many].End() // one of two: now all have one, and few was served the longest ago
				synctest.Wait()
				held[tt.last].End()
				synctest.Wait()
				for _, want := range []turns.Owner{tt.few, tt.last} {
					select {
					case got := <-granted:
						if got != want {
							t.Errorf("%s: %v is served, want %v", name, got, want)
						}
					default:
						t.Errorf("%s: nobody is served, want %v", name, want)
					}
				}
				held[tt.few].End()
				synctest.Wait()
			})
		}
	}
}
