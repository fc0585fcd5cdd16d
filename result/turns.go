package result

// turns holds the items that are due, so that those of each share are begun in the order in which they became due, and
// the shares take turns.
type turns[K comparable] struct {
	items map[string][]*item[K]
	next  []string // the shares that have items, in the order of their turns
}

func (t *turns[K]) add(share string, i *item[K]) {
	if t.items == nil {
		t.items = map[string][]*item[K]{}
	}
	if len(t.items[share]) == 0 {
		t.next = append(t.next, share)
	}
	i.index = inTurns
	t.items[share] = append(t.items[share], i)
}

// take removes the first item of the share whose turn it is; nil when there is none.
func (t *turns[K]) take() *item[K] {
	if len(t.next) == 0 {
		return nil
	}
	share := t.next[0]
	t.next = t.next[1:]
	i := t.items[share][0]
	if rest := t.items[share][1:]; len(rest) > 0 {
		t.items[share], t.next = rest, append(t.next, share)
	} else {
		delete(t.items, share)
	}
	i.index = notQueued
	return i
}

func (t *turns[K]) len() int {
	n := 0
	for _, items := range t.items {
		n += len(items)
	}
	return n
}
