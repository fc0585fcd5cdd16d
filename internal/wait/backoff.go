package wait

import "time"

// Backoff says how long to wait until something that has failed is tried again.
type Backoff struct {
	// First is the pause after the first failure. It doubles with each further one, up to Last.
	First, Last time.Duration
	failures    int
}

// After returns the pause after this number of consecutive failures.
func (b Backoff) After(failures int) time.Duration {
	pause := b.First
	for ; failures > 1 && pause < b.Last; failures-- {
		pause *= 2
	}
	return min(pause, b.Last)
}

// Next counts a failure and returns the pause after it.
func (b *Backoff) Next() time.Duration {
	b.failures++
	return b.After(b.failures)
}

// Reset says that it has succeeded.
func (b *Backoff) Reset() { b.failures = 0 }
