package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
	"github.com/refit-project/refit/internal/wait"
)

func TestFailedPullIsRetriedWithBackoffUntilTheLimit(t *testing.T) {
	t.Parallel()
	inQueue(t, 5, func(p *puller, q *queue.Queue) {
		p.pull = func(context.Context, image.Want, int, func(int64, int64)) (string, error) {
			return "", fmt.Errorf("%w: 401", queue.ErrAuthentication)
		}
		q.Set([]image.Want{want("a"), want("limited", func(w *image.Want) { w.Retries = 0 })}, nil)
		expect(t, q, "a", v1beta1.ImagePhaseWaiting, "attempt 1 of 4 failed", "401", "next attempt is in 1s")
		expect(t, q, "limited", v1beta1.ImagePhaseFailed, "attempt 1 of 1 failed", "denied")
		time.Sleep(1500 * time.Millisecond)
		expect(t, q, "a", v1beta1.ImagePhaseWaiting, "attempt 2 of 4 failed", "in 2s")
		time.Sleep(10 * time.Second)
		if s := expect(t, q, "a", v1beta1.ImagePhaseFailed, "attempt 4 of 4 failed"); s.Completed.IsZero() || s.Percent() != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Hour)
		if p.calls["a:latest"] != 4 || p.calls["limited:latest"] != 1 {
			t.Errorf("pulls %v", p.calls)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 6: 30 * time.Second, 1000: 30 * time.Second} {
		if got := queue.Backoff(n, errors.New("x")); got != want {
			t.Errorf("after attempt %d %s, want %s", n, got, want)
		}
	}
	if got := queue.Backoff(1, fmt.Errorf("pull: %w", queue.ErrTooManyRequests)); got != 15*time.Second {
		t.Errorf("rate limited: %s", got)
	}
	for n, want := range map[int]time.Duration{2: 30 * time.Second, 4: 2 * time.Minute, 1000: 2 * time.Minute} {
		if got := queue.Backoff(n, queue.ErrTooManyRequests); got != want {
			t.Errorf("rate limited, after attempt %d: %s, want %s", n, got, want)
		}
	}
}

// A pull that waits takes no slot from the others.
func TestBackoffDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		p.pull = func(ctx context.Context, w image.Want, n int, _ func(int64, int64)) (string, error) {
			if w.Repository == "bad" && n == 1 {
				return "", errors.New("503 Service Unavailable")
			}
			return "sha256:1", wait.For(ctx, 10*time.Second)
		}
		bad := want("bad", func(w *image.Want) { w.CreatedAt = time.Now().Add(-time.Hour) })
		q.Set([]image.Want{bad, want("a"), want("b")}, nil)
		time.Sleep(15 * time.Second)
		expect(t, q, "a", v1beta1.ImagePhaseSucceeded)
		expect(t, q, "b", v1beta1.ImagePhasePulling)
		expect(t, q, "bad", v1beta1.ImagePhaseWaiting)
		time.Sleep(16 * time.Second)
		expect(t, q, "bad", v1beta1.ImagePhaseSucceeded)
	})
}

func TestStalledPullEndsAtItsTimeout(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		p.pull = func(ctx context.Context, _ image.Want, _ int, report func(int64, int64)) (string, error) {
			report(300, 1000)
			<-ctx.Done()
			return "", fmt.Errorf("PullImage: %w", ctx.Err())
		}
		q.Set([]image.Want{want("a", func(w *image.Want) { w.Timeout, w.Retries, w.Deadline = time.Minute, 5, 90*time.Second })}, nil)
		time.Sleep(30 * time.Second)
		if s := expect(t, q, "a", v1beta1.ImagePhasePulling); s.Percent() != 30 {
			t.Errorf("%d %%", s.Percent())
		}
		time.Sleep(30500 * time.Millisecond)
		expect(t, q, "a", v1beta1.ImagePhaseWaiting, "after 300 of 1000 bytes", "not pulled within timeoutSeconds")
		time.Sleep(time.Minute)
		expect(t, q, "a", v1beta1.ImagePhaseFailed, "activeDeadlineSeconds", "attempt 2 of 6")
	})
}

// A message says how far a pull has come only if it was ended by us, and the runtime has reported bytes.
func TestMessageOfAFailureTellsBytesOnlyOfAStalledPull(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		total int64
		err   error // nil: the end of the context
		want  string
	}{
		"stalled, bytes are reported":  {1000, nil, "attempt 1 of 1 failed after 300 of 1000 bytes: not pulled within timeoutSeconds"},
		"stalled, no bytes are told":   {0, nil, "attempt 1 of 1 failed: not pulled within timeoutSeconds"},
		"refused in the middle":        {1000, errors.New("401"), "attempt 1 of 1 failed: 401"},
		"refused, no bytes, limit hit": {0, queue.ErrTooManyRequests, "attempt 1 of 1 failed: too many requests"},
	} {
		inQueue(t, 1, func(p *puller, q *queue.Queue) {
			p.pull = func(ctx context.Context, _ image.Want, _ int, report func(int64, int64)) (string, error) {
				report(300, tt.total)
				if tt.err == nil {
					<-ctx.Done()
					return "", ctx.Err()
				}
				return "", tt.err
			}
			q.Set([]image.Want{want("a", func(w *image.Want) { w.Retries = 0 })}, nil)
			time.Sleep(time.Hour)
			if s := expect(t, q, "a", v1beta1.ImagePhaseFailed); s.Message != tt.want {
				t.Errorf("%s: message %q, want %q", name, s.Message, tt.want)
			}
		})
	}
}

// Each failed pull is tried again at its own time, whatever the others wait for.
func TestFailedPullsAreTriedAgainEachAtItsTime(t *testing.T) {
	t.Parallel()
	inQueue(t, 5, func(p *puller, q *queue.Queue) {
		p.pull = func(_ context.Context, w image.Want, n int, _ func(int64, int64)) (string, error) {
			switch {
			case n > 1:
				return "sha256:1", nil
			case w.Repository == "limited":
				return "", queue.ErrTooManyRequests
			}
			return "", errors.New("503")
		}
		q.Set([]image.Want{want("a"), want("limited")}, nil)
		time.Sleep(2 * time.Second)
		expect(t, q, "a", v1beta1.ImagePhaseSucceeded)
		expect(t, q, "limited", v1beta1.ImagePhaseWaiting)
		time.Sleep(14 * time.Second)
		expect(t, q, "limited", v1beta1.ImagePhaseSucceeded)
	})
}

// A pull that cannot be tried again in time has failed, and does not wait for the time of that attempt.
func TestNoAttemptIsWaitedForBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		p.pull = func(context.Context, image.Want, int, func(int64, int64)) (string, error) {
			return "", errors.New("503")
		}
		q.Set([]image.Want{want("a", func(w *image.Want) { w.Deadline = 2 * time.Second })}, nil)
		expect(t, q, "a", v1beta1.ImagePhaseWaiting, "next attempt is in 1s")
		time.Sleep(1500 * time.Millisecond) // the third attempt would be after 3 s
		expect(t, q, "a", v1beta1.ImagePhaseFailed, "no further attempt within activeDeadlineSeconds 2")
	})
}
