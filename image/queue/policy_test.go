package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
	"github.com/refit-project/refit/internal/wait"
)

func retries(n int) []image.Want {
	return []image.Want{want("a", func(w *image.Want) { w.Retries = n })}
}

// A job that allowed five attempts is deleted while one is under way: what is said is about the jobs that are left, also while it goes on.
func TestMessageOfAnAttemptIsThatOfTheJobsThatAreLeft(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		left          int // retries
		during, after string
	}{
		"more are left":                      {8, "attempt 5 of 9", "attempt 5 of 9 failed: 404; the next attempt is in 16s"},
		"it is the last":                     {4, "attempt 5 of 5", "attempt 5 of 5 failed: 404"},
		"it is one that they would not have": {1, "attempt 5 (the limit is 2 now)", "attempt 5 (the limit is 2 now) failed: 404"},
	} {
		inQueue(t, 1, func(p *puller, q *queue.Queue) {
			p.pull = func(ctx context.Context, _ image.Want, n int, _ func(int64, int64)) (string, error) {
				if n == 5 {
					if err := wait.For(ctx, time.Minute); err != nil {
						return "", err
					}
				}
				return "", errors.New("404")
			}
			q.Set(retries(6), nil)
			time.Sleep(30 * time.Second)
			if s := expect(t, q, "a", v1beta1.ImagePhasePulling); s.Message != "attempt 5 of 7" {
				t.Errorf("%s: %q before", name, s.Message)
			}
			q.Set(retries(tt.left), nil)
			if s := expect(t, q, "a", v1beta1.ImagePhasePulling); s.Message != tt.during {
				t.Errorf("%s: %q during the attempt, want %q", name, s.Message, tt.during)
			}
			time.Sleep(50 * time.Second)
			synctest.Wait()
			if s := q.States()[want("a").Target]; s.Message != tt.after {
				t.Errorf("%s: %q after it, want %q", name, s.Message, tt.after)
			}
		})
	}
}

// A pull that waits for an attempt that no job requests any more has failed, and Ended is called once for it.
func TestPullWithoutAFurtherAttemptEndsWhenTheJobThatAllowedItIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, ends := newPuller(), make(chan image.State, 10)
		p.pull = func(context.Context, image.Want, int, func(int64, int64)) (string, error) {
			return "", errors.New("404")
		}
		q := queue.New(t.Context(), queue.Config{Puller: p, Ended: func(_ image.Want, s image.State) { ends <- s }})
		defer q.Stop()
		q.Set(retries(9), nil)
		time.Sleep(10 * time.Second) // attempts at 0, 1, 3 and 7 s; the next one is after 15 s
		if s := expect(t, q, "a", v1beta1.ImagePhaseWaiting); s.Message != "attempt 4 of 10 failed: 404; the next attempt is in 8s" {
			t.Errorf("%q", s.Message)
		}
		q.Set(retries(5), nil)
		if s := expect(t, q, "a", v1beta1.ImagePhaseWaiting); s.Message != "attempt 4 of 6 failed: 404; the next attempt is in 8s" {
			t.Errorf("%q", s.Message)
		}
		for range 2 {
			q.Set(retries(0), nil)
			if s := expect(t, q, "a", v1beta1.ImagePhaseFailed); s.Message != "attempt 4 (the limit is 1 now) failed: 404" || s.Completed.IsZero() {
				t.Errorf("%+v", s)
			}
		}
		time.Sleep(time.Hour)
		if synctest.Wait(); len(p.pulls()) != 4 || len(ends) != 1 {
			t.Errorf("%d pulls, %d calls of Ended", len(p.pulls()), len(ends))
		}
	})
}
