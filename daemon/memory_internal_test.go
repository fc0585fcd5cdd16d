package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryIsReleasedOnceAfterABurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &worker{worked: make(chan struct{}, 1)}
		var releases []time.Time
		done := make(chan error, 1)
		go func() { done <- releaseMemory(ctx, w.worked, func() { releases = append(releases, time.Now()) }) }()

		time.Sleep(time.Hour)
		synctest.Wait()
		if len(releases) != 0 {
			t.Errorf("released %d times with nothing done, want none", len(releases))
		}
		var last time.Time
		for range 10 {
			last = time.Now()
			w.noteWork()
			time.Sleep(calmBeforeRelease / 2)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(releases) != 1 || releases[0].Sub(last) != calmBeforeRelease {
			t.Errorf("released at %v, want once, %v after the last work at %v", releases, calmBeforeRelease, last)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
