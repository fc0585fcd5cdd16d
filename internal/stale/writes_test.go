package stale_test

import (
	"testing"

	"github.com/refit-project/refit/internal/stale"
)

func TestWritesAreUnseenUntilTheCacheHasThem(t *testing.T) {
	t.Parallel()
	var w stale.Writes[string]
	unseen := func(key, cached string, want bool) {
		t.Helper()
		if got := w.Unseen(key, cached); got != want {
			t.Errorf("%s in version %s: unseen %t, want %t", key, cached, got, want)
		}
	}
	unseen("a", "1", false)
	w.Wrote("a", "5")
	w.Wrote("b", "7")
	unseen("a", "4", true)
	unseen("a", "4", true)
	w.Wrote("a", "3") // an answer that was delayed
	unseen("a", "4", true)
	unseen("a", "5", false)
	unseen("a", "4", false) // it is forgotten
	unseen("b", "9", false)
	w.Wrote("b", "9")
	w.Forget("b")
	unseen("b", "8", false)
	w.Wrote("c", "not a version")
	unseen("c", "1", false)
}
