package guard

import "context"

// Slots own goroutines that cannot be cancelled, and bound how many of them there are.
type Slots struct{ taken chan struct{} }

// NewSlots allows at most limit goroutines at a time.
func NewSlots(limit int) *Slots { return &Slots{taken: make(chan struct{}, limit)} }

// run starts a goroutine when a slot is free. It reports false if ctx ends before.
func (s *Slots) run(ctx context.Context, do func()) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case s.taken <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	go func() {
		defer func() { <-s.taken }()
		do()
	}()
	return true
}

// Wait waits until all goroutines have ended, or ctx ends, since one that cannot be cancelled may never end. It reports
// whether all have. No goroutine can be started after it.
func (s *Slots) Wait(ctx context.Context) bool {
	for range cap(s.taken) {
		select {
		case s.taken <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
