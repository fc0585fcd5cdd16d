package nodewrite

import (
	"context"
	"testing"
)

// Every node that there ever was left a lock behind.
func TestNothingIsKeptOfANodeThatNobodyWritesFor(t *testing.T) {
	t.Parallel()
	var l locks
	unlock, err := l.lock(t.Context(), "node-a", &change{})
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.lock(impatient, "node-a", &change{}); err == nil {
		t.Error("two hold the lock")
	}
	if len(l.named) != 1 {
		t.Errorf("%d locks while one is held", len(l.named))
	}
	unlock()
	if len(l.named) != 0 {
		t.Errorf("%d locks are left", len(l.named))
	}
	if unlock, err = l.lock(t.Context(), "node-a", &change{}); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// Nodes come and go under new names: what is kept of each would grow for ever.
func TestNothingIsKeptOfANodeImageThatIsGone(t *testing.T) {
	t.Parallel()
	w := Writer{}
	w.locks.wrote("a", written{generation: 7})
	w.locks.wrote("b", written{generation: 3})
	w.Forget("a")
	if w.locks.lastWrite("a").generation != 0 || w.locks.lastWrite("b").generation != 3 || len(w.locks.last) != 1 {
		t.Errorf("%v", w.locks.last)
	}
}
