package configchange

import (
	"fmt"
	"testing"
	"time"
)

func TestANamespaceWhoseConfigurationChangesInALoopDoesNotTakeAllWorkers(t *testing.T) {
	t.Parallel()
	p, now := newPaces(4), time.Now()
	var ends []func()
	for range 2 {
		done, later := p.begin("loop", now)
		if later != 0 {
			t.Fatalf("the first wait for %s", later)
		}
		ends = append(ends, done)
	}
	if _, later := p.begin("loop", now); later == 0 {
		t.Error("one namespace has more than half of the workers")
	}
	if done, later := p.begin("other", now); later != 0 {
		t.Errorf("another namespace waits for %s", later)
	} else {
		done()
	}
	for _, done := range ends {
		done()
	}
	looks := 2
	for ; looks < 10_000; looks++ {
		done, later := p.begin("loop", now)
		if later != 0 {
			if _, later = p.begin("loop", now.Add(later)); later != 0 {
				t.Errorf("still %s after the wait", later)
			}
			break
		}
		done()
	}
	if looks != looksAtOnce {
		t.Errorf("%d looks at one moment", looks)
	}
}

func TestNothingIsKeptOfANamespaceWithoutChanges(t *testing.T) {
	t.Parallel()
	p, now := newPaces(1), time.Now()
	for i := range 1000 {
		done, _ := p.begin(fmt.Sprint(i), now)
		done()
		now = now.Add(time.Second)
	}
	if len(p.by) > 2 {
		t.Errorf("%d namespaces are known", len(p.by))
	}
}
