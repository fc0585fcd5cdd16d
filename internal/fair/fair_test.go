package fair_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/fair"
)

// add puts words like "a1" in the share of their first letter.
func add(t *fair.Turns[string], words ...string) {
	for _, word := range words {
		t.Add(word[:1], word)
	}
}

// take takes n, or as many as there are.
func take(t *fair.Turns[string], n int) string {
	var took []string
	for range n {
		if what, ok := t.Take(); ok {
			took = append(took, what)
		}
	}
	return strings.Join(took, " ")
}

func TestSharesTakeTurns(t *testing.T) {
	t.Parallel()
	var turns fair.Turns[string]
	if what, ok := turns.Take(); ok {
		t.Errorf("%q of nothing", what)
	}
	add(&turns, "a1", "a2", "a3", "b1", "c1", "b2")
	if got := take(&turns, 2); got != "a1 b1" || turns.Len() != 4 {
		t.Errorf("first %s, %d left", got, turns.Len())
	}
	add(&turns, "d1", "a4")
	if got := take(&turns, 9); got != "c1 a2 b2 d1 a3 a4" || turns.Len() != 0 {
		t.Errorf("then %s, %d left", got, turns.Len())
	}
	add(&turns, "a5")
	if got := take(&turns, 9); got != "a5" {
		t.Errorf("again %s", got)
	}
}

func TestSharesThatMayNotHaveATurnKeepTheirPlace(t *testing.T) {
	t.Parallel()
	var turns fair.Turns[string]
	add(&turns, "a1", "b1", "c1", "a2", "c2")
	not := func(excluded string) func(string) bool { return func(share string) bool { return share != excluded } }
	if n := turns.LenOf(not("a")); n != 3 {
		t.Errorf("%d without a", n)
	}
	if what, ok := turns.TakeOf(not("a")); !ok || what != "b1" {
		t.Errorf("%q without a", what)
	}
	if what, ok := turns.TakeOf(func(string) bool { return false }); ok {
		t.Errorf("%q of none", what)
	}
	if got := take(&turns, 9); got != "a1 c1 a2 c2" {
		t.Errorf("then %s", got)
	}
}

func TestTheNewestOfTheShareWithTheMostIsDropped(t *testing.T) {
	t.Parallel()
	var turns fair.Turns[string]
	if what, ok := turns.Drop(); ok {
		t.Errorf("%q of nothing", what)
	}
	add(&turns, "a1", "b1", "b2", "b3", "c1", "c2")
	var dropped []string
	for range 5 {
		what, _ := turns.Drop()
		dropped = append(dropped, what)
	}
	if diff := cmp.Diff([]string{"b3", "c2", "b2", "c1", "b1"}, dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	add(&turns, "b4")
	if got := take(&turns, 9); got != "a1 b4" {
		t.Errorf("left %s", got)
	}
	add(&turns, "b5", "c3")
	if got := take(&turns, 9); got != "b5 c3" {
		t.Errorf("after shares have been dropped: %s", got)
	}
}

// Nothing is kept of what has been taken or dropped, nor of shares, which come and go as namespaces do.
func TestWhatIsTakenIsNotKept(t *testing.T) { //nolint:paralleltest // allocations of others would count
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	for name, remove := range map[string]func(*fair.Turns[[]byte]){
		"taken":   func(turns *fair.Turns[[]byte]) { turns.Take() },
		"dropped": func(turns *fair.Turns[[]byte]) { turns.Drop() },
	} {
		var turns fair.Turns[[]byte]
		before := heap()
		for range 100 {
			turns.Add("busy", make([]byte, 64<<10))
		}
		for turns.Len() > 1 {
			remove(&turns)
		}
		if grown := heap() - before; grown > 1<<20 {
			t.Errorf("%s, all but one: %d KiB are kept", name, grown>>10)
		}
		for i := range 50_000 {
			turns.Add(fmt.Sprint(i), nil)
			for turns.Len() > 1 {
				remove(&turns)
			}
		}
		if grown := heap() - before; grown > 1<<20 {
			t.Errorf("%s: %d KiB are kept", name, grown>>10)
		}
		runtime.KeepAlive(&turns)
	}
}
