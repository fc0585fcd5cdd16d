package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
	"github.com/refit-project/refit/internal/wait"
)

// Changed is called for each change, and Ended once for each end, because it sends an Event.
func TestChangesAndEndsOfPullsAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPuller()
		p.pull = func(_ context.Context, w image.Want, _ int, report func(int64, int64)) (string, error) {
			time.Sleep(time.Second)
			report(1, 10)
			report(1, 10) // no news
			time.Sleep(time.Second)
			report(1, 20)
			time.Sleep(time.Second)
			if w.Repository == "bad" {
				return "", errors.New("500")
			}
			return "sha256:1", nil
		}
		var changes atomic.Int64
		ends := make(chan string, 10)
		ended := []string{}
		said := func() string {
			for len(ends) > 0 {
				ended = append(ended, <-ends)
			}
			return fmt.Sprint(ended)
		}
		q := queue.New(t.Context(), queue.Config{
			Puller: p, Parallel: 1, Changed: func() { changes.Add(1) },
			Ended: func(w image.Want, s image.State) { ends <- fmt.Sprint(w.Repository, " ", s.Phase) },
		})
		defer q.Stop()
		wantCalls := func(after time.Duration, want int, what string) {
			t.Helper()
			changes.Store(0)
			time.Sleep(after)
			synctest.Wait()
			if got := changes.Load(); got != int64(want) {
				t.Errorf("%s: %d calls of Changed, want %d", what, got, want)
			}
		}
		q.Set([]image.Want{want("bad", func(w *image.Want) { w.Retries = 1 }), {Target: image.Target{Reference: image.Reference{Repository: "A b", Tag: "x"}}}}, nil)
		if synctest.Wait(); changes.Load() < 2 || said() != "[A b Failed]" {
			t.Errorf("%d calls of Changed at the beginning, ends %s", changes.Load(), ended)
		}
		wantCalls(1500*time.Millisecond, 1, "bytes twice the same")
		wantCalls(time.Second, 1, "another total")
		wantCalls(time.Second, 1, "end of the attempt")
		if said() != "[A b Failed]" {
			t.Errorf("ends %q while a retry is left", ended)
		}
		wantCalls(time.Minute, 4, "the retry")
		if said() != "[A b Failed bad Failed]" {
			t.Errorf("ends %q", ended)
		}
		q.Set([]image.Want{want("bad", func(w *image.Want) { w.Retries = 1 })}, nil)
		wantCalls(0, 0, "nothing new")
	})
}

// Ended is not called for a failed pull that is not wanted any more.
func TestCancelledPullHasNotFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, ends := newPuller(), make(chan image.State, 10)
		q := queue.New(t.Context(), queue.Config{Puller: p, Ended: func(_ image.Want, s image.State) { ends <- s }})
		defer q.Stop()
		q.Set([]image.Want{want("a", func(w *image.Want) { w.Retries = 0 })}, nil)
		time.Sleep(500 * time.Millisecond)
		q.Set(nil, nil)
		time.Sleep(time.Minute)
		if synctest.Wait(); len(p.pulls()) != 1 || len(ends) != 0 {
			t.Errorf("%d pulls, Ended called with %+v", len(p.pulls()), <-ends)
		}
	})
}

// The second attempt says that it is one; the first does not, and neither does the end.
func TestMessageNamesTheAttempt(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		p.pull = func(ctx context.Context, _ image.Want, n int, _ func(int64, int64)) (string, error) {
			if err := wait.For(ctx, time.Second); err != nil || n == 1 {
				return "", errors.New("503")
			}
			return "sha256:1", nil
		}
		q.Set([]image.Want{want("a")}, nil)
		time.Sleep(500 * time.Millisecond)
		if s := expect(t, q, "a", v1beta1.ImagePhasePulling); s.Message != "" {
			t.Errorf("%q", s.Message)
		}
		time.Sleep(2 * time.Second)
		if s := expect(t, q, "a", v1beta1.ImagePhasePulling); s.Message != "attempt 2 of 4" {
			t.Errorf("%q", s.Message)
		}
		time.Sleep(2 * time.Second)
		if s := expect(t, q, "a", v1beta1.ImagePhaseSucceeded); s.Message != "" {
			t.Errorf("%q", s.Message)
		}
	})
}
