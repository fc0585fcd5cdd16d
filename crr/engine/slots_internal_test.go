package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/identity"
)

// Stops of one namespace that take days leave slots for the others.
func TestOneNamespaceDoesNotTakeAllSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, mallory, shop := newSlots(4), identity.Pod{Namespace: "mallory", Name: "a"}, identity.Pod{Namespace: "shop", Name: "b"}
		for n := range 4 {
			if got, want := s.try(mallory), n < 3; got != want {
				t.Errorf("slot %d of mallory: %t, want %t", n, got, want)
			}
		}
		if !s.try(shop) || s.try(shop) {
			t.Error("shop does not get the slot that is left, or another one")
		}
		var got atomic.Int64
		for range 2 {
			go func() {
				if s.wait(t.Context(), mallory) == nil {
					got.Add(1)
				}
			}()
		}
		synctest.Wait()
		s.release(shop)
		synctest.Wait()
		if got.Load() != 0 {
			t.Error("mallory got the slot of shop")
		}
		s.release(mallory)
		s.release(mallory)
		synctest.Wait()
		if got.Load() != 2 {
			t.Errorf("%d of 2 got a slot", got.Load())
		}
		s.keep(mallory)
		s.releaseKept(mallory)
		if !s.try(mallory) {
			t.Error("a kept slot was not released")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s.wait(ctx, mallory) == nil {
			t.Error("got a slot that is not there")
		}
	})
	if s := newSlots(1); !s.try(identity.Pod{Namespace: "a"}) || s.try(identity.Pod{Namespace: "b"}) {
		t.Error("one slot is not one")
	}
}

func TestTheStopThatHasWaitedLongestComesNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, running := newSlots(4), identity.Pod{Namespace: "shop", Name: "running"}
		others := identity.Pod{Namespace: "other", Name: "running"}
		for range 3 {
			s.try(running)
		}
		s.try(others)
		var order []string
		leave, cancel := context.WithCancel(t.Context())
		for _, name := range []string{"a", "leaves", "b", "c"} {
			ctx := t.Context()
			if name == "leaves" {
				ctx = leave
			}
			go func() {
				if s.wait(ctx, identity.Pod{Namespace: "shop", Name: name}) == nil {
					order = append(order, name)
				}
			}()
			synctest.Wait()
		}
		go func() { _ = s.wait(t.Context(), others) }()
		synctest.Wait()
		s.release(others) // shop has its share
		cancel()
		for range 3 {
			s.release(running)
			synctest.Wait()
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, order); diff != "" || len(s.waiting) > 0 || s.taken != 4 {
			t.Errorf("%d wait, %d are taken (-want +got):\n%s", len(s.waiting), s.taken, diff)
		}
	})
}
