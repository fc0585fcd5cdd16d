// Package fair takes waiting items of several owners, such as namespaces, in turn, so that an owner with many items does
// not delay the others. Limits, pace and execution are decided by its importers.
package fair

import "slices"

// Turns holds waiting items. Items of one share are taken in the order in which they were added, and the shares take turns.
// The zero value is empty and ready to use. Methods must not be called concurrently.
type Turns[T any] struct {
	waiting map[string][]T
	next    []string // the shares with items, in the order of their turns
	n       int
}

// Add puts an item at the end of a share.
func (t *Turns[T]) Add(share string, what T) {
	if t.waiting == nil {
		t.waiting = map[string][]T{}
	}
	if len(t.waiting[share]) == 0 {
		t.next = append(t.next, share)
	}
	t.waiting[share] = append(t.waiting[share], what)
	t.n++
}

// Take removes the first item of the next share; ok is false if nothing waits.
func (t *Turns[T]) Take() (what T, ok bool) {
	return t.TakeOf(func(string) bool { return true })
}

// TakeOf is Take for the shares that may have a turn. The others keep their place.
func (t *Turns[T]) TakeOf(may func(share string) bool) (what T, ok bool) {
	at := slices.IndexFunc(t.next, may)
	if at < 0 {
		return what, false
	}
	share := t.next[at]
	if at == 0 {
		t.next = t.next[1:]
	} else {
		t.next = slices.Delete(t.next, at, at+1)
	}
	of := t.waiting[share]
	what = of[0]
	clear(of[:1]) // the array is kept for a while
	t.keep(share, of[1:])
	if len(of) > 1 {
		t.next = append(t.next, share)
	}
	return what, true
}

// LenOf returns the number of waiting items of the shares that may have a turn.
func (t *Turns[T]) LenOf(may func(share string) bool) int {
	n := 0
	for share, of := range t.waiting {
		if may(share) {
			n += len(of)
		}
	}
	return n
}

// Drop removes the newest item of the largest share; of several largest ones, of the share whose turn is last. ok is false
// if nothing waits. If Drop is called whenever too many items wait, a share cannot displace items of a smaller one.
func (t *Turns[T]) Drop() (what T, ok bool) {
	if t.n == 0 {
		return what, false
	}
	at := 0
	for i, share := range t.next {
		if len(t.waiting[share]) >= len(t.waiting[t.next[at]]) {
			at = i
		}
	}
	share := t.next[at]
	of := t.waiting[share]
	last := len(of) - 1
	what = of[last]
	clear(of[last:])
	t.keep(share, of[:last])
	if last == 0 {
		t.next = append(t.next[:at], t.next[at+1:]...)
	}
	return what, true
}

// keep stores the remaining items of a share after one was removed.
func (t *Turns[T]) keep(share string, left []T) {
	t.n--
	if len(left) == 0 {
		delete(t.waiting, share)
		return
	}
	t.waiting[share] = left
}

// Len returns the number of waiting items.
func (t *Turns[T]) Len() int { return t.n }
